package gcufit

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/placement"
)

// PreScore takes the plugin out of the scoring of pods that ask for no GCU.
func (p *Plugin) PreScore(_ context.Context, state fwk.CycleState, _ *v1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	if readCycle(state) == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// Score rates the choice that the node offers now, 0 to 100.
func (p *Plugin) Score(_ context.Context, state fwk.CycleState, _ *v1.Pod, nodeInfo fwk.NodeInfo) (int64, *fwk.Status) {
	c := readCycle(state)
	if c == nil {
		return 0, nil
	}
	n := c.node(nodeInfo.Node().Name)
	if n == nil {
		return 0, nil
	}
	plan, _ := placement.Choose(&n.Node, c.req)
	if plan == nil {
		return 0, nil
	}
	return placement.Score(&n.Node, c.req, plan, p.args.Weights), nil
}

// ScoreExtensions returns nil: scores are absolute, so that placing a pod on one node never changes
// another node's.
func (p *Plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }
