package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/runtime/target"
)

// Info is what info prints with --json.
type Info struct {
	Version string `json:"version"`
	// Driver is the version of the driver, empty where it is not loaded; Machine the name of the host's
	// machine, empty where the firmware has none.
	Driver  string  `json:"driver"`
	Machine string  `json:"machine,omitempty"`
	Cards   []Card  `json:"cards"`
	Control []Node  `json:"control"`
	Mounts  []Mount `json:"mounts"`
}

// Card is one card. Model is empty and MemoryMiB is 0 where they are not known.
type Card struct {
	Minor     int    `json:"minor"`
	UUID      string `json:"uuid"`
	Model     string `json:"model"`
	MemoryMiB int64  `json:"memoryMiB"`
	PCIBusID  string `json:"pciBusID"`
	NUMA      int    `json:"numa"`
	Node      Node   `json:"node"`
}

func newInfo(t *target.Target) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "info", Short: "Driver, cards, device nodes, and what a container with cards has mounted", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, s, err := open(t)
			if err != nil {
				return err
			}
			driver, driverErr := t.Driver(h)(cmd.Context())
			info := Info{Version: Version, Driver: driver.DriverVersion, Machine: driver.Product,
				Cards: []Card{}, Control: []Node{}, Mounts: mounts(h, s)}
			cards, leftOut := h.List(cmd.Context())
			for _, c := range cards {
				d := c.Device
				info.Cards = append(info.Cards, Card{Minor: d.Minor, UUID: d.UUID, Model: d.Model, MemoryMiB: d.MemoryMiB,
					PCIBusID: d.PCIAddress.String(), NUMA: d.NUMA, Node: nodeOf(c.Node)})
			}
			control, controlErr := h.Control()
			for _, n := range control {
				info.Control = append(info.Control, nodeOf(n))
			}
			show := printInfo
			if asJSON {
				show = func(out io.Writer, i Info) error { return printJSON(out, i) }
			}
			if err := show(cmd.OutOrStdout(), info); err != nil {
				return err
			}
			if driverErr != nil {
				return driverErr
			}
			complain(cmd.ErrOrStderr(), leftOut)
			if _, perCard := eflib.DeviceErrors(leftOut); !perCard {
				return leftOut
			}
			return controlErr
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printInfo(out io.Writer, i Info) error {
	driver := i.Driver
	if driver == "" {
		driver = "not loaded"
	}
	fmt.Fprintf(out, "driver   %s\n", driver)
	if i.Machine != "" {
		fmt.Fprintf(out, "machine  %s\n", i.Machine)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(i.Cards) > 0 {
		fmt.Fprint(w, "\nCARD\tMODEL\tMIB\tPCI\tNUMA\tNODE\tUUID\n")
	}
	for _, c := range i.Cards {
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%d\t%s %d:%d\t%s\n", c.Minor, c.Model, c.MemoryMiB, c.PCIBusID, c.NUMA,
			c.Node.Path, c.Node.Major, c.Node.Minor, c.UUID)
	}
	if len(i.Control) > 0 {
		fmt.Fprint(w, "\nWITH EVERY CARD\n")
	}
	for _, n := range i.Control {
		fmt.Fprintf(w, "%s %d:%d\n", n.Path, n.Major, n.Minor)
	}
	if len(i.Mounts) > 0 {
		fmt.Fprint(w, "\nMOUNTED READ-ONLY\tFROM THE HOST'S\n")
	}
	for _, m := range i.Mounts {
		fmt.Fprintf(w, "%s\t%s\n", m.Destination, m.Source)
	}
	return w.Flush()
}
