package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/runtime/target"
)

// List is what list prints with --json: what a container with a selection of cards is given.
type List struct {
	Version string `json:"version"`
	// Device is the selection.
	Device string  `json:"device"`
	Nodes  []Node  `json:"nodes"`
	Mounts []Mount `json:"mounts"`
}

func newList(t *target.Target) *cobra.Command {
	var asJSON bool
	var device string
	cmd := &cobra.Command{
		Use: "list", Short: "The device nodes, tools and libraries that a container gets, one path of the container a line", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, s, err := open(t)
			if err != nil {
				return err
			}
			selection, err := selectionOf(device)
			if err != nil {
				return err
			}
			list := List{Version: Version, Device: selection.String(), Nodes: []Node{}, Mounts: []Mount{}}
			if !selection.Void() {
				list.Mounts = mounts(h, s)
			}
			if !selection.Void() && list.Device != "none" {
				cards, leftOut := h.List(cmd.Context())
				complain(cmd.ErrOrStderr(), leftOut)
				var present []int
				for _, c := range cards {
					present = append(present, c.Device.Minor)
				}
				minors, err := selection.Pick(present)
				if err != nil {
					return errors.Join(err, leftOut)
				}
				control, err := h.Control()
				if err != nil {
					return err
				}
				for _, n := range control {
					list.Nodes = append(list.Nodes, nodeOf(n))
				}
				for _, c := range cards {
					for _, minor := range minors {
						if c.Device.Minor == minor {
							list.Nodes = append(list.Nodes, nodeOf(c.Node))
						}
					}
				}
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), list)
			}
			for _, n := range list.Nodes {
				fmt.Fprintln(cmd.OutOrStdout(), n.Path)
			}
			for _, m := range list.Mounts {
				fmt.Fprintln(cmd.OutOrStdout(), m.Destination)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&device, "device", "all", deviceHelp)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the numbers of nodes and the host's paths")
	return cmd
}
