// Command enflame-container-cli shows what containers with GCU cards are given on this host, and gives it to
// one that is made by hand.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/topscloud/topscloud/runtime/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := cli.New(os.Getenv, nil).ExecuteContext(ctx); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "enflame-container-cli:", err)
		os.Exit(1)
	}
}
