package ctk

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/eflib/sysfs"
	"github.com/topscloud/topscloud/runtime/doctor"
)

func newDoctor(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look at cgroups, driver, device nodes, CDI and toolkit; the exit code is 1 if a container with cards would fail",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := o.host()
			if err != nil {
				return err
			}
			source := sysfs.New(os.DirFS(o.hostRoot)).Host
			if machine, ok := h.Cards.(*sim.Machine); ok {
				source = machine.Host
			}
			findings := doctor.Examine(cmd.Context(), h, source)
			if err := doctor.Print(cmd.OutOrStdout(), findings); err != nil {
				return err
			}
			if doctor.Worst(findings) == doctor.Error {
				return fmt.Errorf("%w: see the lines with error", ErrFindings)
			}
			return nil
		},
	}
}
