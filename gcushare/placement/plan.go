package placement

import (
	"slices"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// Plan is a choice for one request on one node.
type Plan struct {
	// Cards are the chosen cards by container, in the request's order.
	Cards []topology.Set
	// Closeness is 0 to 100, the mean over containers with more than one card; 100 without such.
	Closeness int
}

// Choose picks the cards for a request. The plan is nil when the reason is not Fit.
func Choose(n *Node, req *share.Request) (*Plan, Reason) {
	if r := Fits(n, req); r != Fit {
		return nil, r
	}
	c := newChooser(n, req)
	defer c.free()
	if !c.place(0) {
		return nil, NoneTogether
	}
	p := &Plan{Cards: slices.Clone(c.picks), Closeness: 100}
	sum, multi := 0, 0
	for i := range req.Containers {
		if req.Containers[i].Cards > 1 {
			sum += c.choice[i].Closeness
			multi++
		}
	}
	if multi > 0 && req.Topology != share.AnyTopology {
		p.Closeness = sum / multi
	}
	return p, Fit
}

// Record turns a plan into the containers of a record.
func (p *Plan) Record(n *Node, req *share.Request) []contract.ContainerAllocation {
	out := make([]contract.ContainerAllocation, 0, len(req.Containers))
	for i := range req.Containers {
		cont := &req.Containers[i]
		a := contract.ContainerAllocation{Name: cont.Name}
		for minor := range p.Cards[i].All() {
			card := &n.Cards[n.Index(minor)]
			a.Cards = append(a.Cards, contract.CardAllocation{
				Minor: minor, UUID: card.UUID, Whole: !cont.Kind.Fractional(),
				MemoryMiB: cont.PerCardMiB(card.TotalMiB, n.UnitMiB, n.SliceCount),
			})
		}
		out = append(out, a)
	}
	return out
}

// Charges is what the pod would hold on each card from its start on.
func (p *Plan) Charges(n *Node, req *share.Request) []share.Charge {
	var holds []share.Hold
	for i := range req.Containers {
		cont := &req.Containers[i]
		for minor := range p.Cards[i].All() {
			card := &n.Cards[n.Index(minor)]
			holds = append(holds, share.Hold{
				Phase: cont.Phase, Minor: minor, Whole: !cont.Kind.Fractional(),
				MiB: cont.PerCardMiB(card.TotalMiB, n.UnitMiB, n.SliceCount),
			})
		}
	}
	return share.Charges(holds, false)
}
