package target

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/eflib/sysfs"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/host"
)

// Sources of cards.
const (
	sourceAuto  = "auto"
	sourceSysfs = "sysfs"
	sourceSim   = "sim"
)

// Target is a host as the flags name it.
type Target struct {
	// Root is where the host's files are, EngineRoot where an engine sees them; empty is Root.
	Root, EngineRoot      string
	source, machine, node string
	stat                  func(string) (host.Node, error)
}

// New returns a target and makes flags set it. getenv reads the environment; stat looks at device nodes, nil
// for the host's.
func New(flags *pflag.FlagSet, getenv func(string) string, stat func(string) (host.Node, error)) *Target {
	t := &Target{stat: stat}
	root := getenv(contract.EnvHostRoot)
	if root == "" {
		root = "/"
	}
	flags.StringVar(&t.Root, "host-root", root, "where the host's files are ($"+contract.EnvHostRoot+")")
	flags.StringVar(&t.EngineRoot, "engine-root", "", "where the engine sees the host's files, if not at --host-root: / for a program in a pod")
	flags.StringVar(&t.source, "device-source", sourceAuto, "where cards are looked up: auto, sysfs or sim")
	flags.StringVar(&t.machine, "machine", "s60x8", "made-up machine of source sim: "+strings.Join(sim.Presets(), ", "))
	flags.StringVar(&t.node, "node-name", "", "node whose uuids the made-up machine has")
	return t
}

// Host opens the host.
func (t *Target) Host() (*host.Host, error) {
	if !filepath.IsAbs(t.Root) {
		return nil, fmt.Errorf("--host-root: %q: want an absolute path", t.Root)
	}
	if t.EngineRoot != "" && !filepath.IsAbs(t.EngineRoot) {
		return nil, fmt.Errorf("--engine-root: %q: want an absolute path", t.EngineRoot)
	}
	files, err := host.ReadFiles(t.Root)
	if err != nil {
		return nil, err
	}
	cards, err := t.cards()
	if err != nil {
		return nil, err
	}
	return &host.Host{Root: filepath.Clean(t.Root), EngineRoot: t.EngineRoot, Files: files, Cards: cards, Stat: t.stat}, nil
}

func (t *Target) cards() (eflib.Inventory, error) {
	switch t.source {
	case sourceAuto, sourceSysfs:
		return sysfs.New(os.DirFS(t.Root)), nil
	case sourceSim:
		machine, err := sim.Preset(t.machine)
		if err != nil {
			return nil, fmt.Errorf("--machine: %w", err)
		}
		if t.node != "" {
			machine = machine.ForNode(t.node)
		}
		return &machine, nil
	}
	return nil, fmt.Errorf("--device-source: %q: want one of %s", t.source, strings.Join([]string{sourceAuto, sourceSysfs, sourceSim}, ", "))
}

// Driver returns what asks a host that was opened about its driver and machine.
func (t *Target) Driver(h *host.Host) func(context.Context) (eflib.Host, error) {
	if machine, ok := h.Cards.(*sim.Machine); ok {
		return machine.Host
	}
	return sysfs.New(os.DirFS(t.Root)).Host
}
