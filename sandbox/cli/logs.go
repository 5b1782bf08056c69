package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/sandbox"
)

// tailBytes is how much of a log is shown when no component is named or the log is followed.
const tailBytes = 4 << 10

func logsCommand(g *global) *cobra.Command {
	follow := false
	cmd := &cobra.Command{
		Use:   "logs [component]",
		Short: "Print the log of a component, or the end of every log",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			layout := sandbox.Layout{Dir: g.dataDir}
			have := layout.LoggedComponents()
			if len(have) == 0 {
				return fmt.Errorf("%s: no logs", g.dataDir)
			}
			out := cmd.OutOrStdout()
			if len(args) == 0 {
				if follow {
					return fmt.Errorf("-f needs a component: %s", strings.Join(have, ", "))
				}
				for _, name := range have {
					fmt.Fprintf(out, "==> %s\n", name)
					if err := tail(cmd.Context(), layout.LogFile(name), out, true, false); err != nil {
						return err
					}
				}
				return nil
			}
			if !slices.Contains(have, args[0]) {
				return fmt.Errorf("component %q has no log; there are %s", args[0], strings.Join(have, ", "))
			}
			return tail(cmd.Context(), layout.LogFile(args[0]), out, follow, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "show the end of the log and what is added to it")
	return cmd
}

// tail copies a log, or only its end, and goes on with what is appended until ctx ends.
func tail(ctx context.Context, path string, out io.Writer, endOnly, follow bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && endOnly && info.Size() > tailBytes {
		if _, err := f.Seek(-tailBytes, io.SeekEnd); err != nil {
			return err
		}
	}
	if _, err := io.Copy(out, f); err != nil || !follow {
		return err
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if _, err := io.Copy(out, f); err != nil {
				return err
			}
		}
	}
}
