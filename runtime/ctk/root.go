package ctk

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/internal/app"
	"github.com/topscloud/topscloud/runtime/host"
	"github.com/topscloud/topscloud/runtime/target"
)

// ErrFindings is the error of check and doctor when they have found something, which they have printed.
var ErrFindings = errors.New("something is to be done")

// New returns the command. getenv reads the environment; stat looks at device nodes, nil for the host's.
func New(getenv func(string) string, stat func(string) (host.Node, error)) *cobra.Command {
	root := &cobra.Command{
		Use:           "enflame-ctk",
		Short:         "Prepare a host for containers with GCU cards",
		Version:       app.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	o := target.New(root.PersistentFlags(), getenv, stat)
	root.AddCommand(newCDI(o), newConfigure(o), newDoctor(o))
	return root
}

// oneOf is an error unless a flag has one of some values.
func oneOf(flag, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("--%s: %q: want one of %s", flag, value, strings.Join(values, ", "))
}
