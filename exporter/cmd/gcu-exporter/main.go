// Command gcu-exporter serves metrics of GCU cards and of the pods that hold them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/topscloud/topscloud/exporter/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command.New(os.Getenv).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "gcu-exporter:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}
