package ctk

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/doctor"
	"github.com/topscloud/topscloud/runtime/engine"
	"github.com/topscloud/topscloud/runtime/engine/containerd"
	"github.com/topscloud/topscloud/runtime/engine/crio"
	"github.com/topscloud/topscloud/runtime/engine/docker"
	"github.com/topscloud/topscloud/runtime/target"
)

// known is an engine that can be configured.
type known struct {
	name                   string
	configure, unconfigure func(engine.Options) ([]engine.Change, error)
	restart                string
	isDefault              bool
}

// engines lists them. Docker has no runtime classes, so there the runtime is the default unless one says
// otherwise.
func engines() []known {
	return []known{
		{name: "containerd", configure: containerd.Configure, unconfigure: containerd.Unconfigure, restart: "systemctl restart containerd"},
		{name: "docker", configure: docker.Configure, unconfigure: docker.Unconfigure, restart: "systemctl restart docker (stops containers unless live-restore is on)", isDefault: true},
		{name: "crio", configure: crio.Configure, unconfigure: crio.Unconfigure, restart: "systemctl restart crio"},
	}
}

// Values of --cgroup-driver besides the drivers.
const (
	driverAuto    = "auto"
	driverInherit = "inherit"
)

type configureFlags struct {
	engine, runtimePath, driver     string
	dryRun, unconfigure, setDefault bool
}

func newConfigure(o *target.Target) *cobra.Command {
	var f configureFlags
	cmd := &cobra.Command{
		Use:   "configure",
		Short: "Tell a container engine of enflame-container-runtime, or take it back; does not restart the engine",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return configure(cmd, o, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.engine, "engine", "", "containerd, docker or crio (required)")
	flags.StringVar(&f.runtimePath, "runtime-path", contract.RuntimePath, "enflame-container-runtime, as the engine sees it")
	flags.StringVar(&f.driver, "cgroup-driver", driverAuto, "for containerd: systemd, cgroupfs, inherit (as the default runtime has it) or auto (as kubelet has it, else inherit)")
	flags.BoolVar(&f.setDefault, "set-as-default", false, "make it the default runtime; docker: true unless said otherwise")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print what would change, and change nothing")
	flags.BoolVar(&f.unconfigure, "unconfigure", false, "undo it")
	return cmd
}

func configure(cmd *cobra.Command, o *target.Target, f configureFlags) error {
	var names []string
	var chosen known
	for _, e := range engines() {
		names = append(names, e.name)
		if e.name == f.engine {
			chosen = e
		}
	}
	if err := oneOf("engine", f.engine, names...); err != nil {
		return err
	}
	if err := oneOf("cgroup-driver", f.driver, driverAuto, driverInherit, doctor.Systemd, doctor.Cgroupfs); err != nil {
		return err
	}
	options := engine.Options{Root: o.Root, RuntimePath: f.runtimePath, SetAsDefault: f.setDefault}
	if !cmd.Flags().Changed("set-as-default") {
		options.SetAsDefault = chosen.isDefault
	}
	driver := f.driver
	if driver == driverAuto {
		kubelet, err := doctor.FindKubelet(o.Root)
		if err != nil {
			return fmt.Errorf("kubelet's cgroup driver: %w (choose one with --cgroup-driver)", err)
		}
		driver = kubelet.Driver
	}
	if driver == doctor.Systemd || driver == doctor.Cgroupfs {
		systemd := driver == doctor.Systemd
		options.SystemdCgroup = &systemd
	}
	plan := chosen.configure
	if f.unconfigure {
		plan = chosen.unconfigure
	}
	changes, err := plan(options)
	if err != nil {
		return err
	}
	return carryOut(cmd, chosen, changes, f.dryRun)
}

func carryOut(cmd *cobra.Command, e known, changes []engine.Change, dryRun bool) error {
	out := cmd.OutOrStdout()
	for _, c := range changes {
		if dryRun {
			fmt.Fprint(out, c.Diff())
			continue
		}
		if err := c.Apply(); err != nil {
			return err
		}
		word := "written"
		if c.New == nil {
			word = "removed"
		}
		fmt.Fprintf(out, "%s %s\n", c.Path, word)
	}
	switch {
	case len(changes) == 0:
		fmt.Fprintf(out, "%s: nothing to do, no restart needed\n", e.name)
	case !dryRun:
		fmt.Fprintf(out, "%s reads this when it is restarted: %s\n", e.name, e.restart)
	}
	return nil
}
