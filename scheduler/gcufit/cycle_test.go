package gcufit

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// flight is a pod between Reserve and the answer to its Binding.
type flight struct {
	e     *entry
	pod   *v1.Pod // with the node set, as the framework hands it on
	state *cycleState
	node  string
	term  int // of all processes, in which the pod was looked at
}

func assumed(pod *v1.Pod, f *flight) *v1.Pod {
	if f != nil {
		return f.pod
	}
	return pod
}

func (p *process) flightOf(uid types.UID) *flight {
	for _, f := range p.binding {
		if f.pod.UID == uid {
			return f
		}
	}
	for _, b := range p.paused {
		if b.flight.pod.UID == uid {
			return b.flight
		}
	}
	return nil
}

// schedule runs one scheduling cycle. It reports whether a pod was there to try.
func (p *process) schedule() bool {
	var ready []*entry
	for _, uid := range slices.Sorted(maps.Keys(p.entries)) {
		if e := p.entries[uid]; e.state == active {
			ready = append(ready, e)
		}
	}
	if len(ready) == 0 {
		return false
	}
	e := ready[p.w.rng.IntN(len(ready))]
	if e.pod.DeletionTimestamp != nil {
		e.state = sleeping
		return true
	}
	p.busy = true
	p.cycle(e)
	p.busy = false
	return true
}

func (p *process) cycle(e *entry) {
	ctx, state, pod := context.Background(), newState(), e.pod
	e.state, e.missed, e.woken = cycling, nil, false
	term := p.ordinal
	nodes := slices.SortedFunc(maps.Values(p.nodes), func(a, b *v1.Node) int { return cmp.Compare(a.Name, b.Name) })
	_, status := p.plugin.PreFilter(ctx, state, pod, nil)
	p.w.note("cycle of %s %s by %s: %v", pod.Name, pod.UID, p.id, status.AsError())
	if status.Code() == fwk.Error {
		p.retry(e)
		return
	}
	p.w.election.tookOver = max(p.w.election.tookOver, term)
	p.w.perturb()
	results := nodeStatuses{}
	var feasible []*v1.Node
	for _, n := range nodes {
		if status.IsSuccess() {
			s := p.filter(state, pod, n)
			results[n.Name] = s
			if s.IsSuccess() {
				feasible = append(feasible, n)
			}
			continue
		}
		results[n.Name] = status
	}
	p.w.perturb()
	if len(feasible) == 0 {
		_, post := p.plugin.PostFilter(ctx, state, pod, results)
		p.w.note("%s fits nowhere: %s", pod.Name, post.Message())
		if status.IsSuccess() {
			p.preempt(state, pod, nodes, results)
		}
		p.w.perturb()
		p.comeBack(e, p.sleep)
		return
	}
	p.reserve(e, state, feasible, term)
}

// filter is RunFilterPluginsWithNominatedPods with a node selector beside the plugin.
func (p *process) filter(state *cycleState, pod *v1.Pod, n *v1.Node) *fwk.Status {
	ctx, info := context.Background(), nodeInfo{node: n}
	if pool := pod.Spec.NodeSelector["pool"]; pool != "" && pool != n.Name {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "selector").WithPlugin("NodeAffinity")
	}
	with := state
	for _, other := range (&modelHandle{p: p}).NominatedPodsForNode(n.Name) {
		if o := other.GetPod(); o.UID != pod.UID && priority(o) >= priority(pod) {
			if with == state {
				with = state.Clone().(*cycleState)
			}
			p.plugin.AddPod(ctx, with, pod, other, info)
		}
	}
	s := p.plugin.Filter(ctx, with, pod, info)
	if s.IsSuccess() && with != state {
		s = p.plugin.Filter(ctx, state, pod, info)
	}
	if s != nil {
		s.SetPlugin(Name)
	}
	return s
}

func (p *process) reserve(e *entry, state *cycleState, feasible []*v1.Node, term int) {
	ctx := context.Background()
	n := feasible[p.w.rng.IntN(len(feasible))]
	pod := e.pod.DeepCopy()
	pod.Spec.NodeName = n.Name
	delete(p.nominated, pod.UID)
	before := p.core.ledger.Dump()
	if status := p.plugin.Reserve(ctx, state, pod, n.Name); !status.IsSuccess() {
		p.w.note("reserve of %s on %s: %s", pod.Name, n.Name, status.Message())
		p.plugin.Unreserve(ctx, state, pod, n.Name)
		p.retry(e)
		return
	}
	if p.w.chance(5) {
		p.undoAndRedo(pod, before)
	}
	p.w.note("reserved %s %s on %s", pod.Name, pod.UID, n.Name)
	e.state = flying
	p.binding = append(p.binding, &flight{e, pod, state, n.Name, term})
}

// undoAndRedo holds the ledger to its word that Forget is the exact inverse of Assume.
func (p *process) undoAndRedo(pod *v1.Pod, before string) {
	l := p.core.ledger
	h, after := l.Holder(pod.UID), l.Dump()
	l.Forget(pod.UID)
	if got := l.Dump(); got != before {
		p.w.fail("after Assume and Forget:\n%s\nwant\n%s", got, before)
	}
	if err := l.Assume(h); err != nil {
		p.w.fail("Assume after Forget: %v", err)
	}
	if got := l.Dump(); got != after {
		p.w.fail("after Assume, Forget and Assume:\n%s\nwant\n%s", got, after)
	}
}

// bindOne lets one pod's Binding be sent and answered.
func (p *process) bindOne() bool {
	if len(p.binding) == 0 {
		return false
	}
	i := p.w.rng.IntN(len(p.binding))
	f := p.binding[i]
	p.binding = slices.Delete(p.binding, i, i+1)
	b := &call{p: p, flight: f}
	b.next, b.stop = iter.Pull(func(pause func(struct{}) bool) {
		b.pause = pause
		p.bound(f, p.plugin.Bind(context.WithValue(context.Background(), callKey{}, b), f.state, f.pod, f.node))
	})
	b.resume()
	return true
}

func (p *process) bound(f *flight, status *fwk.Status) {
	switch {
	case p.dead:
		return
	case status.IsSuccess():
		f.e.state = off
		return
	}
	p.w.note("bind of %s %s by %s: %s", f.pod.Name, f.pod.UID, p.id, status.Message())
	p.plugin.Unreserve(context.Background(), f.state, f.pod, f.node)
	p.gone(f.pod)
	p.retry(f.e)
}

// call is one call of Bind, which can be paused for as long as one likes just before a Binding is sent.
type call struct {
	p      *process
	flight *flight
	next   func() (struct{}, bool)
	stop   func()
	pause  func(struct{}) bool
}

// callKey is where the context of a call of Bind has the call.
type callKey struct{}

func (b *call) resume() {
	if _, paused := b.next(); paused {
		b.p.paused = append(b.p.paused, b)
	}
}

// resumeOne lets one paused call of Bind go on.
func (p *process) resumeOne() bool {
	if len(p.paused) == 0 {
		return false
	}
	i := p.w.rng.IntN(len(p.paused))
	b := p.paused[i]
	p.paused = slices.Delete(p.paused, i, i+1)
	b.resume()
	return true
}

// retry is the queue's backoff after an error.
func (p *process) retry(e *entry) {
	p.comeBack(e, func(e *entry) { e.state, e.missed, e.woken = active, nil, false })
}

// comeBack is handleSchedulingFailure: the pod goes on as the informer shows it, if it is still to be placed.
func (p *process) comeBack(e *entry, how func(*entry)) {
	now := podOf(p.podInformer.store[e.pod.Name])
	switch {
	case p.entries[e.pod.UID] != e, now == nil, now.UID != e.pod.UID, bound(now):
		e.state = off
		return
	}
	e.pod = now
	how(e)
	if p.w.chance(30) {
		if truth := p.w.pods[now.Name]; truth != nil && truth.UID == now.UID && truth.Status.NominatedNodeName == now.Status.NominatedNodeName {
			p.w.write(truth, nil) // the condition PodScheduled
		}
	}
}

// wouldFit returns a node that a waiting pod fits right now.
func (p *process) wouldFit(e *entry) string {
	state := newState()
	if _, status := p.plugin.PreFilter(context.Background(), state, e.pod, nil); !status.IsSuccess() {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(p.nodes)) {
		if p.filter(state, e.pod, p.nodes[name]).IsSuccess() {
			return name
		}
	}
	return ""
}

// preempt is what DefaultPreemption does: it tries each node without all lower pods, puts back as many
// as it can, nominates the pod and deletes the rest.
func (p *process) preempt(state *cycleState, pod *v1.Pod, nodes []*v1.Node, results nodeStatuses) {
	ctx := context.Background()
	for _, n := range nodes {
		if results[n.Name].Code() != fwk.Unschedulable || p.nominated[pod.UID] != "" {
			continue
		}
		try, info := state.Clone().(*cycleState), nodeInfo{node: n}
		var lower, victims []*v1.Pod
		for _, key := range slices.Sorted(maps.Keys(p.podInformer.store)) {
			if o := podOf(p.podInformer.store[key]); o.Spec.NodeName == n.Name && priority(o) < priority(pod) {
				lower = append(lower, o)
				p.plugin.RemovePod(ctx, try, pod, podInfo{pod: o}, info)
			}
		}
		if len(lower) == 0 || !p.filter(try, pod, n).IsSuccess() {
			continue
		}
		for _, o := range lower {
			p.plugin.AddPod(ctx, try, pod, podInfo{pod: o}, info)
			if !p.filter(try, pod, n).IsSuccess() {
				p.plugin.RemovePod(ctx, try, pod, podInfo{pod: o}, info)
				victims = append(victims, o)
			}
		}
		if !p.filter(try, pod, n).IsSuccess() {
			p.w.fail("%s does not fit %s any more after its victims were tried", pod.Name, n.Name)
		}
		p.w.note("%s is nominated to %s, %d victims", pod.Name, n.Name, len(victims))
		p.evict(pod, n.Name, victims)
		return
	}
}

func (p *process) evict(pod *v1.Pod, node string, victims []*v1.Pod) {
	p.nominated[pod.UID] = node
	if truth := p.w.pods[pod.Name]; truth != nil && truth.UID == pod.UID && unbound(truth) {
		p.w.write(truth, func(q *v1.Pod) { q.Status.NominatedNodeName = node })
	}
	for _, v := range victims {
		if truth := p.w.pods[v.Name]; truth != nil && truth.UID == v.UID {
			p.w.remove(truth)
		}
	}
}
