package gcufit

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/placement"
)

// Filter judges one node. It takes no lock, and allocates nothing per node.
func (p *Plugin) Filter(_ context.Context, state fwk.CycleState, _ *v1.Pod, nodeInfo fwk.NodeInfo) *fwk.Status {
	c := readCycle(state)
	if c == nil {
		return nil
	}
	n := c.node(nodeInfo.Node().Name)
	if n == nil {
		return c.statuses.of(placement.NoDevices)
	}
	return c.statuses.of(placement.Fits(&n.Node, c.req))
}
