package gcufit

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/placement"
)

// EventsToRegister names the events that can make room for a pod this plugin turned away. Each hint
// first brings the event to the ledger, since the feed may hear of it only later, and then wakes the
// pod only if it now fits the node that the event is about.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete | fwk.Update}, QueueingHintFn: p.afterPod},
		{Event: fwk.ClusterEvent{Resource: fwk.UnscheduledPod, ActionType: fwk.Delete}, QueueingHintFn: p.afterPod},
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}, QueueingHintFn: p.afterOwnUpdate},
		{
			Event:          fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeAnnotation | fwk.UpdateNodeLabel},
			QueueingHintFn: p.afterNode,
		},
	}, nil
}

// afterPod judges by the node of a pod that was deleted or changed.
func (p *Plugin) afterPod(_ klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	was, _ := oldObj.(*v1.Pod)
	now, _ := newObj.(*v1.Pod)
	other := now
	if other == nil {
		other = was
	}
	if other == nil {
		return fwk.Queue, nil
	}
	if now != nil || p.left(other) {
		p.ledger.Foresee(other, now == nil)
	}
	node := other.Spec.NodeName
	if node == "" {
		node = other.Status.NominatedNodeName
	}
	return p.fitsNow(pod, node)
}

// left says whether a pod is really gone. kube-scheduler reports "assigned pod deleted" also for pods
// that are alive: one whose Binding failed (maybe only its answer was lost, and the pod runs), one whose
// nomination changed, one whose deletion began. The informer's store is always ahead of such reports.
func (p *Plugin) left(pod *v1.Pod) bool {
	obj, exists, err := p.pods.GetStore().GetByKey(podKey(pod))
	if err != nil || !exists {
		return err == nil
	}
	now, ok := obj.(*v1.Pod)
	return ok && now.UID != pod.UID
}

// afterNode judges by a node that came or changed.
func (p *Plugin) afterNode(_ klog.Logger, pod *v1.Pod, _, newObj any) (fwk.QueueingHint, error) {
	node, ok := newObj.(*v1.Node)
	if !ok {
		return fwk.Queue, nil
	}
	p.ledger.ObserveNode(node)
	return p.fitsNow(pod, node.Name)
}

// afterOwnUpdate wakes a pod whose own request changed: a corrected annotation, for example.
func (p *Plugin) afterOwnUpdate(_ klog.Logger, _ *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	was, okWas := oldObj.(*v1.Pod)
	now, okNow := newObj.(*v1.Pod)
	if !okWas || !okNow || !p.sameRequest(was, now) {
		return fwk.Queue, nil
	}
	// Annotations count by their size, too; limits of a pod never change for these resources.
	if size(was.Annotations) != size(now.Annotations) {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

func (p *Plugin) fitsNow(pod *v1.Pod, node string) (fwk.QueueingHint, error) {
	n := p.ledger.Node(node)
	if n == nil {
		return fwk.QueueSkip, nil
	}
	req, err := p.parse(pod, n.UnitMiB)
	if err != nil || req == nil {
		return fwk.QueueSkip, nil
	}
	// A node without a card that this pod may use can still end its search for an unknown card.
	if len(req.Use) > 0 || placement.Fits(&n.Node, req) == placement.Fit {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}
