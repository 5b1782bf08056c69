package ctk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/eflib/sysfs"
	"github.com/topscloud/topscloud/internal/app"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/host"
)

// ErrFindings is the error of check and doctor when they have found something, which they have printed.
var ErrFindings = errors.New("something is to be done")

// options are the flags of all commands.
type options struct {
	hostRoot, engineRoot, source, machine, node string
	stat                                        func(string) (host.Node, error) // nil: the host's nodes
}

// Sources of cards: what the kernel tells, or a made-up machine. Identities that only the vendor's library
// knows are not to be had here, since this program is static.
const (
	sourceAuto  = "auto"
	sourceSysfs = "sysfs"
	sourceSim   = "sim"
)

// New returns the command. getenv reads the environment; stat looks at device nodes, nil for the host's.
func New(getenv func(string) string, stat func(string) (host.Node, error)) *cobra.Command {
	o := &options{stat: stat}
	root := &cobra.Command{
		Use:           "enflame-ctk",
		Short:         "Prepare a host for containers with GCU cards",
		Version:       app.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	hostRoot := getenv(contract.EnvHostRoot)
	if hostRoot == "" {
		hostRoot = "/"
	}
	flags := root.PersistentFlags()
	flags.StringVar(&o.hostRoot, "host-root", hostRoot, "where the host's files are ($"+contract.EnvHostRoot+")")
	flags.StringVar(&o.engineRoot, "engine-root", "", "where the engine sees the host's files, if not at --host-root: / for an enflame-ctk in a pod")
	flags.StringVar(&o.source, "device-source", sourceAuto, "where cards are looked up: auto, sysfs or sim")
	flags.StringVar(&o.machine, "machine", "s60x8", "made-up machine of source sim: "+strings.Join(sim.Presets(), ", "))
	flags.StringVar(&o.node, "node-name", "", "node whose uuids the made-up machine has")
	root.AddCommand(newCDI(o), newConfigure(o), newDoctor(o))
	return root
}

// host opens the host.
func (o *options) host() (*host.Host, error) {
	if !filepath.IsAbs(o.hostRoot) {
		return nil, fmt.Errorf("--host-root: %q: want an absolute path", o.hostRoot)
	}
	if o.engineRoot != "" && !filepath.IsAbs(o.engineRoot) {
		return nil, fmt.Errorf("--engine-root: %q: want an absolute path", o.engineRoot)
	}
	files, err := host.ReadFiles(o.hostRoot)
	if err != nil {
		return nil, err
	}
	cards, err := o.cards()
	if err != nil {
		return nil, err
	}
	return &host.Host{Root: filepath.Clean(o.hostRoot), EngineRoot: o.engineRoot, Files: files, Cards: cards, Stat: o.stat}, nil
}

func (o *options) cards() (eflib.Inventory, error) {
	switch o.source {
	case sourceAuto, sourceSysfs:
		return sysfs.New(os.DirFS(o.hostRoot)), nil
	case sourceSim:
		machine, err := sim.Preset(o.machine)
		if err != nil {
			return nil, fmt.Errorf("--machine: %w", err)
		}
		if o.node != "" {
			machine = machine.ForNode(o.node)
		}
		return &machine, nil
	}
	return nil, fmt.Errorf("--device-source: %q: want one of %s", o.source, strings.Join([]string{sourceAuto, sourceSysfs, sourceSim}, ", "))
}

// oneOf is an error unless a flag has one of some values.
func oneOf(flag, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("--%s: %q: want one of %s", flag, value, strings.Join(values, ", "))
}
