package sandbox

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/topscloud/topscloud/sandbox/binaries"
	"github.com/topscloud/topscloud/sandbox/simnode"
)

// Options of Start. Only DataDir is required.
type Options struct {
	// DataDir holds everything the sandbox writes.
	DataDir string
	// Binaries are the control-plane files; the zero value calls binaries.Ensure.
	Binaries binaries.Set
	// ControllerManager and StockScheduler switch the parts on.
	ControllerManager, StockScheduler bool
	// GCUScheduler is the executable of gcu-scheduler; empty runs none.
	GCUScheduler string
	// GCUSchedulerConfig is a KubeSchedulerConfiguration in YAML; empty means the shipped one. The
	// sandbox sets clientConnection.kubeconfig in it.
	GCUSchedulerConfig []byte
	// GCUSchedulerArgs are further flags of gcu-scheduler.
	GCUSchedulerArgs []string
	// Machines are simulated nodes, run inside this process.
	Machines []simnode.Machine
	// Agents makes each of them run the real node agent and feature discovery, with their own rights, against an
	// imitation of kubelet. Exporters makes each of these run the exporter too, on a port of its own.
	Agents, Exporters bool
	// Prometheus is the executable of a Prometheus that scrapes all parts; empty runs none.
	Prometheus string
	// NodeMonitorGracePeriod is how long a silent node counts as ready; 0 keeps Kubernetes' default.
	NodeMonitorGracePeriod time.Duration
	// FeatureGates is passed to the API server, the controller manager and the schedulers
	// ("GenericWorkload=true"), RuntimeConfig to the API server. Both may be empty.
	FeatureGates, RuntimeConfig string
	// Log gets one line per step; nil drops them.
	Log io.Writer
}

func (o *Options) complete() error {
	if o.DataDir == "" {
		return errors.New("sandbox: no data folder")
	}
	abs, err := filepath.Abs(o.DataDir)
	if err != nil {
		return fmt.Errorf("sandbox: data folder %s: %w", o.DataDir, err)
	}
	o.DataDir = abs
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Exporters && !o.Agents {
		return errors.New("sandbox: exporters without agents: want agents too, since exporters ask them who holds what")
	}
	if o.Prometheus != "" {
		if o.Prometheus, err = executable("sandbox: prometheus", o.Prometheus); err != nil {
			return err
		}
	}
	if o.NodeMonitorGracePeriod < 0 {
		return fmt.Errorf("sandbox: node monitor grace period %s: want 0 or more", o.NodeMonitorGracePeriod)
	}
	return nil
}
