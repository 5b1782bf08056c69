package gcufit

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// state is where a pending pod is in kube-scheduler's queue.
type state int

const (
	active   state = iota // will be tried
	cycling               // is being tried; events are kept for when it comes back
	flying                // has its reservation, its Binding is on its way
	sleeping              // was turned away by the plugin, waits for a hint or Activate
	off                   // bound by us, the queue waits to see it
)

type entry struct {
	pod    *v1.Pod
	state  state
	missed []event // of the time it was cycling
	woken  bool
}

func (e *entry) wake() {
	switch e.state {
	case sleeping:
		e.state = active
	case cycling:
		e.woken = true
	}
}

// event is a cluster event with the hint function registered for it.
type event struct {
	hint     fwk.QueueingHintFn
	old, new any
}

// happen asks every sleeping pod's hint, as MoveAllToActiveOrBackoffQueue does.
func (p *process) happen(e event) {
	for _, uid := range slices.Sorted(maps.Keys(p.entries)) {
		switch q := p.entries[uid]; q.state {
		case sleeping:
			if p.asks(q, e) {
				q.state = active
			}
		case cycling:
			q.missed = append(q.missed, e)
		}
	}
}

func (p *process) asks(q *entry, e event) bool {
	hint, err := e.hint(klog.Background(), q.pod, e.old, e.new)
	return err != nil || hint == fwk.Queue
}

// sleep puts a pod that fits nowhere to sleep, unless something happened meanwhile.
func (p *process) sleep(q *entry) {
	missed := q.missed
	q.state, q.missed = sleeping, nil
	for _, e := range missed {
		if p.asks(q, e) {
			q.state = active
		}
	}
	if q.woken {
		q.state, q.woken = active, false
	}
}

// untyped keeps a nil *v1.Pod from becoming an interface that is not nil.
func untyped(p *v1.Pod) any {
	if p == nil {
		return nil
	}
	return p
}

// gone is EventAssignedPodDelete. kube-scheduler uses it for pods that were deleted, and also for pods
// that are alive: one whose Binding failed, and one whose nomination changed.
func (p *process) gone(pod *v1.Pod) {
	p.happen(event{p.plugin.afterPod, untyped(pod), nil})
}

// podEvent is what kube-scheduler's own handlers do with a pod.
func (p *process) podEvent(n notification) {
	was, now := podOf(n.old), podOf(n.new)
	switch {
	case was != nil && now != nil && was.UID != now.UID:
		p.podEvent(notification{old: was})
		p.podEvent(notification{new: now})
	case now == nil:
		p.podGone(was)
	case was == nil:
		if unbound(now) {
			p.entries[now.UID] = &entry{pod: now}
			p.nominate(now)
		}
	case bound(was):
		p.happen(event{p.plugin.afterPod, was, now})
	case bound(now):
		p.drop(now.UID)
	default:
		p.pendingUpdate(was, now)
	}
}

func (p *process) podGone(was *v1.Pod) {
	e := p.entries[was.UID]
	switch {
	case bound(was):
		p.drop(was.UID)
		p.gone(was)
		return
	case e == nil:
	case e.state == flying:
		p.drop(was.UID)
		p.gone(assumed(e.pod, p.flightOf(was.UID)))
		return
	}
	p.drop(was.UID)
	if was.Status.NominatedNodeName != "" {
		p.gone(was)
	}
}

func (p *process) pendingUpdate(was, now *v1.Pod) {
	e := p.entries[now.UID]
	if e == nil {
		return
	}
	if e.state == flying || e.state == off {
		if now.DeletionTimestamp != nil && was.DeletionTimestamp == nil {
			p.gone(assumed(e.pod, p.flightOf(now.UID)))
		}
		return
	}
	e.pod = now
	p.nominate(now)
	own := event{p.plugin.afterOwnUpdate, was, now}
	switch e.state {
	case sleeping:
		if p.asks(e, own) {
			e.state = active
		}
	case cycling:
		e.missed = append(e.missed, own)
	}
	if was.Status.NominatedNodeName != "" && was.Status.NominatedNodeName != now.Status.NominatedNodeName {
		p.gone(was)
	}
}

func (p *process) nominate(pod *v1.Pod) {
	if node := pod.Status.NominatedNodeName; node != "" {
		p.nominated[pod.UID] = node
	}
}

func (p *process) drop(uid types.UID) {
	delete(p.entries, uid)
	delete(p.nominated, uid)
}

func (p *process) nodeEvent(n notification) {
	var was *v1.Node
	if n.old != nil {
		was, _ = n.old.(*v1.Node)
	}
	now, _ := n.new.(*v1.Node)
	if now == nil {
		delete(p.nodes, name(n.old))
		return
	}
	p.nodes[now.Name] = now
	if was == nil {
		// Pods that another plugin kept away from all other nodes.
		for _, e := range p.entries {
			if pool := e.pod.Spec.NodeSelector["pool"]; pool == now.Name {
				e.wake()
			}
		}
		p.happen(event{p.plugin.afterNode, nil, now})
		return
	}
	p.happen(event{p.plugin.afterNode, was, now})
}
