package gcufit

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/share"
)

// signature is everything of a pod that Filter and Score look at, and nothing else: pods with equal
// signatures may share one scheduling cycle's results.
type signature struct {
	Containers []signedContainer `json:"c"`
	Policy     share.Policy      `json:"p"`
	Topology   share.Topology    `json:"t"`
	Use        []string          `json:"u,omitempty"`
	NoUse      []string          `json:"n,omitempty"`
}

type signedContainer struct {
	Phase  share.Phase `json:"p"`
	Kind   share.Kind  `json:"k"`
	Amount int64       `json:"a"`
	Cards  int         `json:"c"`
}

// SignPod signs pods that ask for GCU by their request. A pod that asks in a wrong way is not signable:
// it fails in PreFilter for itself.
func (p *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	req, err := p.parse(pod, 0)
	if err != nil {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the pod's GCU request cannot be read")
	}
	if req == nil {
		return nil, nil
	}
	s := signature{Policy: req.Policy, Topology: req.Topology, Use: req.Use, NoUse: req.NoUse}
	for _, c := range req.Containers {
		s.Containers = append(s.Containers, signedContainer{c.Phase, c.Kind, c.Amount, c.Cards})
	}
	return []fwk.SignFragment{{Key: Name + ".request", Value: s}}, nil
}
