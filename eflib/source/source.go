package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/efsmi"
	"github.com/topscloud/topscloud/eflib/libefml"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/eflib/sysfs"
)

// The values of Options.Source.
const (
	// Auto is libefml if it can be loaded, else efsmi if it is there, else sysfs alone.
	Auto    = "auto"
	Sysfs   = "sysfs"
	Libefml = "libefml"
	Efsmi   = "efsmi"
	Sim     = "sim"
)

// Names returns the values of Options.Source, for help texts.
func Names() []string { return []string{Auto, Sysfs, Libefml, Efsmi, Sim} }

// Options say which cards to open. Callers register flags for them.
type Options struct {
	// Source is one of Names; empty is Auto.
	Source string
	// Machine is the made-up machine of source sim, one of sim.Presets.
	Machine string
	// Node is whose uuids the made-up machine has; empty is those of the preset.
	Node string
	// ControlFile lists the faults of the made-up machine; it need not exist.
	ControlFile string
	// HostRoot is where the host's files are; empty is "/".
	HostRoot string
	// Library and Tool are the files of libefml and efsmi; empty searches for them.
	Library, Tool string
	// Interval is how often Watch looks, 5 s when 0.
	Interval time.Duration
	// CallTimeout bounds one call into libefml, 3 s when 0.
	CallTimeout time.Duration
}

const defaultInterval = 5 * time.Second

// host is an inventory that knows its host.
type host interface {
	eflib.Inventory
	Host(ctx context.Context) (eflib.Host, error)
}

// Source is an opened host.
type Source struct {
	host
	eflib.Telemetry
	name     string
	interval time.Duration
	// events calls its argument when it is time to look; nil where the back end has no events.
	events func(ctx context.Context, look func())
	close  func() error
}

var (
	_ eflib.Inventory = (*Source)(nil)
	_ eflib.Telemetry = (*Source)(nil)
	_ eflib.Watcher   = (*Source)(nil)
)

// Open opens the cards that the options describe.
func Open(o Options) (*Source, error) {
	if o.Source == "" {
		o.Source = Auto
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	if o.Source == Sim {
		return openSim(o)
	}
	root := o.HostRoot
	if root == "" {
		root = "/"
	}
	base := sysfs.New(os.DirFS(root))
	s := &Source{host: base, Telemetry: base, name: Sysfs, interval: o.Interval}
	if o.Source == Sysfs {
		return s, nil
	}
	var missing []error
	if o.Source != Efsmi {
		library, err := libefml.Open(libefml.Options{Path: o.Library, HostRoot: o.HostRoot, CallTimeout: o.CallTimeout})
		if err == nil {
			s.join(base, library, "libefml ("+library.Path()+")")
			s.close = library.Close
			s.events = func(ctx context.Context, look func()) {
				// An error ends with ctx; the watcher looks by itself anyway.
				_ = library.Events(ctx, func(libefml.Event) { look() })
			}
			return s, nil
		}
		missing = append(missing, err)
	}
	if o.Source != Libefml {
		tool, err := o.Tool, error(nil)
		if tool == "" {
			tool, err = efsmi.Find(o.HostRoot)
		}
		if err == nil {
			s.join(base, efsmi.New(efsmi.Command(tool)), "efsmi ("+tool+")")
			return s, nil
		}
		missing = append(missing, err)
	}
	if o.Source == Auto {
		return s, nil
	}
	return nil, fmt.Errorf("device source %s: %w", o.Source, errors.Join(missing...))
}

func (o Options) validate() error {
	switch {
	case !slices.Contains(Names(), o.Source):
		return fmt.Errorf("device source %q: want one of %s", o.Source, strings.Join(Names(), ", "))
	case o.Source == Sim && o.Machine == "":
		return fmt.Errorf("device source sim: which machine? one of %s", strings.Join(sim.Presets(), ", "))
	case o.Source != Sim && (o.Machine != "" || o.ControlFile != "" || o.Node != ""):
		return fmt.Errorf("device source %s: machine, node and control file are for source sim", o.Source)
	}
	return nil
}

func openSim(o Options) (*Source, error) {
	m, err := sim.Preset(o.Machine)
	if err != nil {
		return nil, err
	}
	if o.Node != "" {
		m = m.ForNode(o.Node)
	}
	live := sim.NewLive(m, o.ControlFile)
	return &Source{host: live, Telemetry: live, name: "sim (" + o.Machine + ")", interval: o.Interval}, nil
}

// join adds what the cards say of themselves to what sysfs knows.
func (s *Source) join(base *sysfs.Inventory, cards Cards, name string) {
	both := Join(base, cards)
	s.host, s.Telemetry, s.name = both, both, Sysfs+" and "+name
}

// String names the back ends, for a log line at the start.
func (s *Source) String() string { return s.name }

// Watch implements eflib.Watcher: it looks every interval, and at once when the driver has an event.
func (s *Source) Watch(ctx context.Context) <-chan eflib.State {
	nudge := make(chan struct{}, 1)
	if s.events != nil {
		go s.events(ctx, func() {
			select {
			case nudge <- struct{}{}:
			default: // a look is due already
			}
		})
	}
	return eflib.NewPoller(s, s.interval, nudge).Watch(ctx)
}

// Close gives up what Open opened. Watches are ended by their contexts.
func (s *Source) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}
