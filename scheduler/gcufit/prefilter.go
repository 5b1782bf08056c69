package gcufit

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// PreFilter parses the pod once and takes the view that the cycle looks at.
func (p *Plugin) PreFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if !share.Asks(p.names, pod) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	term, err := p.ready(ctx)
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	if h := p.ledger.Holder(pod.UID); h != nil && h.State == ledger.Doubtful {
		return nil, fwk.AsStatus(fmt.Errorf("the answer to an earlier binding to node %s was lost and is not settled yet", h.Node))
	}
	view := p.ledger.View()
	req, err := p.parse(pod, view.UnitMiB)
	if err == nil {
		err = checkSize(p.names, pod, req)
	}
	if err == nil {
		err = checkUUIDs(p.names, view, req)
	}
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	state.Write(stateKey, &cycle{req: req, term: term, view: view, statuses: newStatuses(p.names, req)})
	return nil, nil
}

// Upper bounds of the text one card and one container take in a record and in the older keys beside it.
const (
	bytesPerCard      = 160
	bytesPerContainer = 400
)

// checkSize refuses a pod whose record could pass its limit or push the pod's annotations past theirs:
// a Binding may exceed that, and every later write to the pod would then fail.
func checkSize(names *contract.Names, pod *v1.Pod, req *share.Request) error {
	record := 0
	for _, c := range req.Containers {
		record += bytesPerContainer + c.Cards*bytesPerCard
	}
	if has := size(pod.Annotations); has+record > contract.MaxAnnotationsBytes {
		return &share.InvalidError{Field: "annotations", Value: fmt.Sprintf("%d bytes", has), Want: fmt.Sprintf("want at most %d beside the GCU record", contract.MaxAnnotationsBytes-record)}
	}
	if cards := record / bytesPerCard; record > 4*contract.MaxAllocationBytes {
		return &share.InvalidError{Field: "limit " + names.ResourceWhole, Value: fmt.Sprintf("about %d cards over all containers", cards), Want: "the pod's GCU record would pass 16 KiB; ask for fewer cards"}
	}
	return nil
}

func size(annotations map[string]string) int {
	sum := 0
	for k, v := range annotations {
		sum += len(k) + len(v)
	}
	return sum
}

// checkUUIDs says which wanted card no node has.
func checkUUIDs(names *contract.Names, view *ledger.View, req *share.Request) error {
	if len(req.Use) == 0 {
		return nil
	}
	known := make(map[string]bool, len(req.Use))
	for n := range view.Nodes() {
		for i := range n.Cards {
			known[n.Cards[i].UUID] = true
		}
	}
	for _, uuid := range req.Use {
		if !known[uuid] {
			return &share.InvalidError{Field: names.UseUUIDKey, Value: uuid, Want: "no node has this card"}
		}
	}
	return nil
}

// PreFilterExtensions returns the plugin: its state depends on other pods.
func (p *Plugin) PreFilterExtensions() fwk.PreFilterExtensions { return p }

// RemovePod tries the node without a pod, as preemption does with its victims.
func (p *Plugin) RemovePod(_ context.Context, state fwk.CycleState, _ *v1.Pod, victim fwk.PodInfo, nodeInfo fwk.NodeInfo) *fwk.Status {
	c := readCycle(state)
	if c == nil || nodeInfo.Node() == nil {
		return nil
	}
	n := c.node(nodeInfo.Node().Name)
	if n == nil {
		return nil
	}
	uid := victim.GetPod().UID
	h := n.Holder(uid)
	if h == nil {
		return nil
	}
	if c.removed == nil {
		c.removed = map[types.UID]*ledger.Holder{}
	}
	c.removed[uid] = h
	c.try(n.Without(uid))
	return nil
}

// AddPod tries the node with a pod: one that was removed before gets its former cards, another one
// (nominated to the node, and not bound yet) those that the chooser would give it.
func (p *Plugin) AddPod(_ context.Context, state fwk.CycleState, _ *v1.Pod, added fwk.PodInfo, nodeInfo fwk.NodeInfo) *fwk.Status {
	c := readCycle(state)
	if c == nil || nodeInfo.Node() == nil {
		return nil
	}
	n := c.node(nodeInfo.Node().Name)
	pod := added.GetPod()
	if n == nil || n.Holder(pod.UID) != nil {
		return nil
	}
	if h, ok := c.removed[pod.UID]; ok && h.Node == n.Name {
		with := n.With(h)
		if was := c.view.Node(n.Name); was != nil && with.SameHolders(was) {
			with = was // nothing is tried any more
		}
		c.try(with)
		return nil
	}
	if with := p.withPod(n, pod); with != n {
		p.nominations.see(pod.UID, n.Name)
		c.try(with)
	}
	return nil
}

// withPod returns the node with a pod that holds nothing yet: on the cards the chooser gives it, or, while
// there is no room for it, with what is free set aside on the cards it will get once the pods below its
// priority are gone. Those are the ones that preemption is ending for it.
func (p *Plugin) withPod(n *ledger.Node, pod *v1.Pod) *ledger.Node {
	req, err := p.parse(pod, n.UnitMiB)
	if err != nil || req == nil {
		return n // such a pod cannot be placed anywhere
	}
	if plan, _ := placement.Choose(&n.Node, req); plan != nil {
		return n.With(ledger.Plan(pod, n.Name, req, plan.Record(&n.Node, req)))
	}
	later := n.Above(priority(pod))
	if plan, _ := placement.Choose(&later.Node, req); plan != nil {
		return n.With(ledger.ClaimOn(pod, n.Name, req, plan.Record(&later.Node, req)))
	}
	return n.With(ledger.Claim(pod, n.Name, req))
}
