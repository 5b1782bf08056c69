package gcufit

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
)

// PostFilter adds the nearest miss to the pod's message and notes that the pod waits. It nominates
// nothing, so preemption runs after it as ever.
func (p *Plugin) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	c := readCycle(state)
	if c == nil {
		// PreFilter refused the pod as it is written now, so no room is for it, and what it was woken for is
		// another's.
		if share.Asks(p.names, pod) {
			p.waitsNoMore(ctx, pod.UID, "")
		}
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	p.waiting.add(klog.FromContext(ctx), p.ledger, c, pod)
	miss := placement.NewMiss(c.req)
	for n := range c.view.Nodes() {
		// A node that something else forbids is no near miss of ours.
		if s := statuses.Get(n.Name); s != nil && s.Plugin() == Name {
			miss.See(&n.Node)
		}
	}
	if text := miss.Text(p.names); text != "" {
		return nil, fwk.NewStatus(fwk.Unschedulable, text)
	}
	return nil, fwk.NewStatus(fwk.Unschedulable)
}
