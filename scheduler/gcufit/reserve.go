package gcufit

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
)

// reserveTries bounds how often Reserve chooses anew when an event takes the room it had chosen.
const reserveTries = 3

// Reserve chooses the cards on the node as it is now and charges them. Losing a race is an error, not
// unschedulable: the pod comes back after its backoff and not on the next event of some node.
func (p *Plugin) Reserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) *fwk.Status {
	c := readCycle(state)
	if c == nil {
		return nil
	}
	var lost error
	for range reserveTries {
		n := p.ledger.Node(nodeName)
		if n == nil {
			return fwk.AsStatus(fmt.Errorf("node %s: the ledger does not know it any more", nodeName))
		}
		// The framework shows nominated pods to Filter only, so they are added here once more: the room
		// that a higher pod made by preemption is not free.
		n = p.withNominated(n, pod)
		plan, why := placement.Choose(&n.Node, c.req)
		if plan == nil {
			return fwk.AsStatus(fmt.Errorf("node %s: room was taken since it was looked at: %s", nodeName, why.Text(p.names, c.req)))
		}
		lost = p.ledger.Assume(ledger.Plan(pod, nodeName, c.req, plan.Record(&n.Node, c.req)))
		if lost == nil && !p.exists(pod) {
			p.ledger.Forget(pod.UID)
			return fwk.AsStatus(errors.New("the pod is gone, or bound by someone else"))
		}
		if lost == nil {
			klog.FromContext(ctx).V(5).Info("Reserved GCU", "pod", klog.KObj(pod), "node", nodeName)
			p.waitsNoMore(ctx, pod.UID, nodeName)
			return nil
		}
		if !errors.Is(lost, ledger.ErrNoRoom) && !errors.Is(lost, ledger.ErrUnknownDevice) {
			break
		}
	}
	return fwk.AsStatus(lost)
}

// exists says whether the informer's store has the pod, unbound. The feed runs behind the store. So if the
// pod is there after it was charged, the feed will hear of its end later than that, and frees it. If it is
// not, the feed may have told the ledger of the pod's whole life before the queue heard of any of it; a pod
// charged after that would be freed by nobody who frees for good.
func (p *Plugin) exists(pod *v1.Pod) bool {
	obj, ok, err := p.pods.GetStore().GetByKey(podKey(pod))
	now, isPod := obj.(*v1.Pod)
	return err == nil && ok && isPod && now.UID == pod.UID && now.Spec.NodeName == ""
}

// Unreserve undoes Reserve. A doubtful or confirmed pod keeps its charge.
func (p *Plugin) Unreserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodeName string) {
	if readCycle(state) == nil {
		return
	}
	p.ledger.Forget(pod.UID)
}

// withNominated returns the node with the pods nominated to it whose priority is at least the pod's, in the
// nominator's order: the framework added them so for Filter, and tight packing depends on the order.
func (p *Plugin) withNominated(n *ledger.Node, pod *v1.Pod) *ledger.Node {
	var others []*v1.Pod
	for _, info := range p.handle.NominatedPodsForNode(n.Name) {
		if other := info.GetPod(); other.UID != pod.UID && priority(other) >= priority(pod) && n.Holder(other.UID) == nil {
			others = append(others, other)
		}
	}
	for _, other := range others {
		n = p.withPod(n, other)
	}
	return n
}

func priority(pod *v1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}
