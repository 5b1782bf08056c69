package gcufit

import (
	"context"
	"errors"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/config"
	"github.com/topscloud/topscloud/scheduler/lease"
)

// Name is the plugin's name in a scheduler configuration.
const Name = contract.PluginName

// Plugin is GCUFit for one profile.
type Plugin struct {
	*core
	handle fwk.Handle
	args   *config.Args
}

var (
	_ fwk.PreFilterPlugin     = (*Plugin)(nil)
	_ fwk.PreFilterExtensions = (*Plugin)(nil)
	_ fwk.FilterPlugin        = (*Plugin)(nil)
	_ fwk.PostFilterPlugin    = (*Plugin)(nil)
	_ fwk.PreScorePlugin      = (*Plugin)(nil)
	_ fwk.ScorePlugin         = (*Plugin)(nil)
	_ fwk.ReservePlugin       = (*Plugin)(nil)
	_ fwk.BindPlugin          = (*Plugin)(nil)
	_ fwk.EnqueueExtensions   = (*Plugin)(nil)
	_ fwk.SignPlugin          = (*Plugin)(nil)
)

// Factory makes the plugin for each profile of one scheduler process.
type Factory struct {
	// Lease says whether the process still leads; nil stands for a process without leader election.
	Lease *lease.Hold

	// mu guards core.
	mu   sync.Mutex
	core *core
}

// New is the factory function to register under Name.
func (f *Factory) New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := config.Read(obj)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.core == nil {
		hold := f.Lease
		if hold == nil {
			hold = lease.NewHold(clock.RealClock{})
		}
		if f.core, err = newCore(ctx, args, handle, hold); err != nil {
			return nil, err
		}
	} else if *f.core.names != *args.Names || f.core.recordTimeout != args.RecordTimeout {
		return nil, errors.New(Name + ": resource, resourceAlias and recordTimeout must be the same in all profiles, since they share one ledger")
	}
	f.core.addProfile(handle.ProfileName())
	return &Plugin{core: f.core, handle: handle, args: args}, nil
}

// Ledger returns the ledger of the process, nil before the first profile was made.
func (f *Factory) Ledger() *ledger.Ledger {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.core == nil {
		return nil
	}
	return f.core.ledger
}

// Name returns the plugin's name.
func (p *Plugin) Name() string { return Name }

func (p *Plugin) parse(pod *v1.Pod, unitMiB int64) (*share.Request, error) {
	return share.Parse(p.names, pod, share.Defaults{UnitMiB: unitMiB, Policy: p.args.DefaultPolicy})
}
