// Command gcu-sandbox runs a real control plane with simulated GCU nodes on this machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/topscloud/topscloud/sandbox/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := cli.New().ExecuteContext(ctx); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "gcu-sandbox:", err)
		os.Exit(1)
	}
}
