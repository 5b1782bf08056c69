// Command gcu-feature-discovery labels a node with what its GCU cards are.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/topscloud/topscloud/nfd/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command.New(os.Getenv).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "gcu-feature-discovery:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}
