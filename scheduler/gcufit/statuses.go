package gcufit

import (
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// statuses hands out the answers of Filter. Their texts are made once a cycle, one per reason. Each
// node gets a status of its own nevertheless, since the framework writes the plugin's name into what
// Filter returns, from many goroutines at once; those come from chunks, so that no node costs an
// allocation.
type statuses struct {
	texts [placement.Reasons]*fwk.Status
	chunk atomic.Pointer[statusChunk]
}

type statusChunk struct {
	next  atomic.Int32
	items [256]fwk.Status
}

func newStatuses(names *contract.Names, req *share.Request) *statuses {
	s := new(statuses)
	for r := placement.Fit + 1; int(r) < placement.Reasons; r++ {
		code := fwk.UnschedulableAndUnresolvable
		if r.Resolvable() {
			code = fwk.Unschedulable
		}
		s.texts[r] = fwk.NewStatus(code, r.Text(names, req))
	}
	return s
}

// of returns a fresh status for a reason, nil for Fit.
func (s *statuses) of(r placement.Reason) *fwk.Status {
	if r == placement.Fit {
		return nil
	}
	for {
		c := s.chunk.Load()
		if c != nil {
			if i := c.next.Add(1) - 1; int(i) < len(c.items) {
				c.items[i] = *s.texts[r]
				return &c.items[i]
			}
		}
		// Whoever loses this race finds the winner's chunk on the next turn.
		s.chunk.CompareAndSwap(c, new(statusChunk))
	}
}
