package ctk

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/runtime/doctor"
	"github.com/topscloud/topscloud/runtime/target"
)

func newDoctor(o *target.Target) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look at cgroups, driver, device nodes, CDI and toolkit; the exit code is 1 if a container with cards would fail",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := o.Host()
			if err != nil {
				return err
			}
			findings := doctor.Examine(cmd.Context(), h, o.Driver(h))
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
