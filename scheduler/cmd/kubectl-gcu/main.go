// Command kubectl-gcu is a kubectl plugin for clusters with GCU cards.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRoot(os.Stdin, os.Stdout, os.Getenv).ExecuteContext(ctx)
	code, tell := exitCode(err)
	if tell {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	stop()
	os.Exit(code)
}
