package gcufit

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/scheduler/lease"
)

const stateKey fwk.StateKey = Name

// cycle is what one scheduling cycle of a GCU pod knows. The view and the request are shared by all
// clones; a clone owns only its trials.
type cycle struct {
	req      *share.Request
	term     lease.Term // of leading in which the view was taken
	view     *ledger.View
	statuses *statuses
	// trial holds nodes changed by AddPod and RemovePod, removed the holders taken from them, so that
	// a pod that is added back gets its former cards. Both are nil while nothing was tried.
	trial   map[string]*ledger.Node
	removed map[types.UID]*ledger.Holder
}

// Clone copies the trials; preemption clones once per candidate node.
func (c *cycle) Clone() fwk.StateData {
	d := *c
	d.trial, d.removed = maps.Clone(c.trial), maps.Clone(c.removed)
	return &d
}

// node returns a node as this cycle sees it, nil if the ledger does not know it.
func (c *cycle) node(name string) *ledger.Node {
	if n, ok := c.trial[name]; ok {
		return n
	}
	return c.view.Node(name)
}

func (c *cycle) try(n *ledger.Node) {
	if c.trial == nil {
		c.trial = map[string]*ledger.Node{}
	}
	c.trial[n.Name] = n
}

// readCycle returns the pod's cycle, nil for pods that ask for no GCU.
func readCycle(state fwk.CycleState) *cycle {
	if data, err := state.Read(stateKey); err == nil {
		if c, ok := data.(*cycle); ok {
			return c
		}
	}
	return nil
}
