package ctk

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/cdi"
	"github.com/topscloud/topscloud/runtime/target"
)

func newCDI(o *target.Target) *cobra.Command {
	var dir string
	var removeLast bool
	cmd := &cobra.Command{Use: "cdi", Short: "The CDI spec of the host's cards"}
	cmd.PersistentFlags().StringVar(&dir, "dir", contract.CDIStaticDir, "folder of the spec, on the host")

	write := func(use, short string) *cobra.Command {
		sub := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := o.Host()
			if err != nil {
				return err
			}
			r, err := cdi.Generate(cmd.Context(), h, dir, removeLast)
			if err != nil {
				return err
			}
			if r.LeftOut != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "left out: %s\n", strings.ReplaceAll(r.LeftOut.Error(), "\n", "\nleft out: "))
			}
			switch {
			case r.Removed:
				fmt.Fprintf(cmd.OutOrStdout(), "%s removed: the host has no card\n", r.Path)
			case r.Changed:
				fmt.Fprintf(cmd.OutOrStdout(), "%s written: %d devices\n", r.Path, len(r.Devices))
			case len(r.Devices) == 0:
				fmt.Fprintf(cmd.OutOrStdout(), "%s: nothing to do, the host has no card\n", r.Path)
			default:
				fmt.Fprintf(cmd.OutOrStdout(), "%s: nothing to do, %d devices\n", r.Path, len(r.Devices))
			}
			return nil
		}}
		return sub
	}
	generate := write("generate", "Write the spec; with no card or no driver the file stays as it is and the exit code is 1")
	generate.Flags().BoolVar(&removeLast, "remove-last", false, "remove the spec when the driver is loaded and there is no card")
	refresh := write("refresh", "Bring the spec back or up to date, as after a reboot or a change of cards; the same as generate --remove-last")
	refresh.PreRun = func(*cobra.Command, []string) { removeLast = true }

	list := &cobra.Command{Use: "list", Short: "The devices that an engine can resolve, with their files", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		h, err := o.Host()
		if err != nil {
			return err
		}
		devices, err := cdi.List(h, dir, contract.CDIDynamicDir)
		for _, d := range devices {
			fmt.Fprintf(cmd.OutOrStdout(), "%-42s %s\n", d.Name, d.Path)
		}
		return err
	}}
	check := &cobra.Command{Use: "check", Short: "Compare the spec with the host; the exit code is 1 if they differ", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		h, err := o.Host()
		if err != nil {
			return err
		}
		found, err := cdi.Check(cmd.Context(), h, dir)
		if err != nil {
			return err
		}
		for _, line := range found {
			fmt.Fprintln(cmd.OutOrStdout(), line)
		}
		if len(found) > 0 {
			return fmt.Errorf("%w: enflame-ctk cdi refresh", ErrFindings)
		}
		fmt.Fprintln(cmd.OutOrStdout(), "the spec is that of the host")
		return nil
	}}
	cmd.AddCommand(generate, list, check, refresh)
	return cmd
}
