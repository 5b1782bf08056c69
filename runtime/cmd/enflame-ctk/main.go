// Command enflame-ctk prepares a host for containers with GCU cards.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/topscloud/topscloud/runtime/ctk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := ctk.New(os.Getenv, nil).ExecuteContext(ctx); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "enflame-ctk:", err)
		os.Exit(1)
	}
}
