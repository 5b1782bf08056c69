package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/runtime/bundle"
	"github.com/topscloud/topscloud/runtime/modifier"
	"github.com/topscloud/topscloud/runtime/target"
)

func newConfigure(t *target.Target) *cobra.Command {
	var device string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "configure --device SELECTION BUNDLE",
		Short: "Give the container of an OCI bundle cards, by editing its config.json before runc or crun reads it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, s, err := open(t)
			if err != nil {
				return err
			}
			selection, err := selectionOf(device)
			if err != nil {
				return err
			}
			dir, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			// A link would have us read, and print, a file that is somebody else's.
			info, err := os.Lstat(bundle.SpecPath(dir))
			if err != nil {
				return err
			}
			if !info.Mode().IsRegular() {
				return fmt.Errorf("%s is no regular file", bundle.SpecPath(dir))
			}
			text, err := bundle.Read(dir)
			if err != nil {
				return err
			}
			m := modifier.Modifier{Host: h, Settings: s, Preview: dryRun}
			edited, outcome, err := m.Give(cmd.Context(), dir, text, selection)
			if err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
			complain(cmd.ErrOrStderr(), outcome.LeftOut)
			switch {
			case dryRun:
				var pretty bytes.Buffer
				if err := json.Indent(&pretty, edited, "", "  "); err != nil {
					return err
				}
				_, err := fmt.Fprintln(cmd.OutOrStdout(), pretty.String())
				return err
			case !outcome.Changed:
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: nothing to do\n", bundle.SpecPath(dir))
				return err
			}
			if err := bundle.Replace(dir, edited); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s written: cards %v\n", bundle.SpecPath(dir), outcome.Cards)
			return err
		},
	}
	cmd.Flags().StringVar(&device, "device", "", deviceHelp+" (required)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the spec as it would be, and change nothing")
	if err := cmd.MarkFlagRequired("device"); err != nil {
		panic(err) // there is no such flag
	}
	return cmd
}
