// Command gcu-device-plugin is the node agent: it serves whole cards and shares of cards to kubelet and gives
// containers the cards of their pods' records.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/topscloud/topscloud/deviceplugin/agent/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command.New(os.Getenv).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "gcu-device-plugin:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}
