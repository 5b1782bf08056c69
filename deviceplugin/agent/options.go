package agent

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// What is done with a pod that comes without a record.
const (
	Adopt  = "adopt"  // the node places it where there is room, and writes its record
	Refuse = "refuse" // its containers are refused
)

// Source is where cards are seen.
type Source interface {
	eflib.Watcher
	eflib.Telemetry
}

// Options of an Agent. Those without a default must be set.
type Options struct {
	Names  *contract.Names // nil is contract.Default
	Node   string
	Client kubernetes.Interface
	Source Source

	// PluginDir is kubelet's device-plugins folder, PodResources the path of its pod-resources socket.
	PluginDir, PodResources string
	// CDIDir is where tickets' files go, StateDir where book and history are kept.
	CDIDir, StateDir string
	// HostRoot is where the host's /sys is; empty is "/".
	HostRoot string
	// BookSocket is where the node's other programs are told who holds what (package nodebook); empty tells nobody.
	BookSocket string
	// Instance tells this process's sockets from those of another agent that runs at the same time.
	Instance string

	// Serve are the resources that are served; empty is all of them.
	Serve []share.Kind
	// UnitMiB and SliceCount are what a unit and a slice are; 0 is the default.
	UnitMiB, SliceCount int64
	// ForceUnit serves a unit that gives one card more IDs than is good.
	ForceUnit bool
	// PassDeviceSpecs makes kubelet pass whole cards itself.
	PassDeviceSpecs bool
	// Unrecorded is Adopt or Refuse; empty is Adopt.
	Unrecorded string

	Health health.Options
	// HealthInterval is how often cards are looked at, 5 s when 0.
	HealthInterval time.Duration
	// Engine tells whether the container engine resolves CDI names; nil takes it for granted.
	Engine EngineProbe
	// NRISocket is the engine's NRI socket, where containers are looked at once more; empty does not look. It
	// need not exist.
	NRISocket string
	// RefusedFor is how long a pod is refused before it is evicted, 2 min when 0.
	RefusedFor time.Duration
	// NodeInterval is how often the Node object is read, 15 s when 0.
	NodeInterval time.Duration
	// Settle is passed to kubelet.Options.
	Settle time.Duration
	// Metrics counts what happens; nil counts for nobody.
	Metrics *Metrics
}

// maxUnits is the number of IDs of one card beyond which a unit is refused: each held ID is in kubelet's
// checkpoint and in pod status.
const maxUnits = 1024

func (o *Options) complete() error {
	if o.Names == nil {
		o.Names = contract.Default()
	}
	if len(o.Serve) == 0 {
		o.Serve = []share.Kind{share.Whole, share.Memory, share.Slices}
	}
	if o.Names.ResourceAlias != "" && !slices.Contains(o.Serve, share.Alias) {
		o.Serve = append(slices.Clone(o.Serve), share.Alias)
	}
	if o.UnitMiB == 0 {
		o.UnitMiB = share.DefaultUnitMiB
	}
	if o.SliceCount == 0 {
		o.SliceCount = contract.DefaultSliceCount
	}
	if o.Unrecorded == "" {
		o.Unrecorded = Adopt
	}
	for at, d := range map[*time.Duration]time.Duration{
		&o.HealthInterval: 5 * time.Second, &o.RefusedFor: 2 * time.Minute, &o.NodeInterval: 15 * time.Second,
	} {
		if *at == 0 {
			*at = d
		}
	}
	if o.HostRoot == "" {
		o.HostRoot = "/"
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	switch {
	case o.Node == "" || o.Client == nil || o.Source == nil || o.Instance == "":
		return errors.New("node, client, source and instance must be set")
	case !slices.Contains([]string{Adopt, Refuse}, o.Unrecorded):
		return fmt.Errorf("unrecorded %q: want %s or %s", o.Unrecorded, Adopt, Refuse)
	case o.UnitMiB < 1 || o.SliceCount < 1 || o.SliceCount > maxUnits:
		return fmt.Errorf("unit of %d MiB, %d slices: want at least 1 MiB and 1 to %d slices", o.UnitMiB, o.SliceCount, maxUnits)
	}
	for _, path := range []string{o.PluginDir, o.PodResources, o.CDIDir, o.StateDir, o.HostRoot} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("path %q: want an absolute path", path)
		}
	}
	return nil
}

func (o *Options) bookPath() string    { return filepath.Join(o.StateDir, "book.json") }
func (o *Options) historyPath() string { return filepath.Join(o.StateDir, "health.json") }
func (o *Options) unitsPath() string   { return filepath.Join(o.StateDir, "units.json") }
