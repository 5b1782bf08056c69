package gcufit

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/internal/contract"
)

// weighted is something that can happen, with how often.
type weighted struct {
	weight int
	do     func(*world)
}

var steps = []weighted{
	{26, func(w *world) { w.leader.deliver() }},
	{3, func(w *world) {
		if w.standby != nil {
			w.standby.deliver()
		}
	}},
	{2, func(w *world) { w.leader.deliverAll() }},
	{14, (*world).create},
	{20, func(w *world) {
		if !w.leader.busy {
			w.leader.schedule()
		}
	}},
	{16, func(w *world) { w.leader.bindOne() }},
	{6, func(w *world) { w.leader.resumeOne() }},
	{9, func(w *world) { w.leader.elect() }},
	{4, (*world).campaign},
	{9, func(w *world) { w.pass(time.Duration(w.rng.IntN(3000)) * time.Millisecond) }},
	{1, (*world).stall},
	{2, (*world).usurp},
	{1, (*world).cut},
	{24, (*world).haunt},
	{4, func(w *world) { w.leader.settleOne() }},
	{4, (*world).commitLate},
	{7, (*world).delete},
	{5, (*world).complete},
	{6, (*world).initialize},
	{4, (*world).annotate},
	{4, (*world).mutate},
	{2, (*world).breakWatch},
	{1, (*world).failOver},
	{2, (*world).bindElsewhere},
	{4, (*world).recordElsewhere},
	{1, (*world).expire},
	{1, (*world).garble},
	{3, (*world).repair},
}

// step lets one thing happen.
func (w *world) step() {
	at := w.rng.IntN(w.totalWeight)
	for _, s := range w.steps {
		if at -= s.weight; at < 0 {
			s.do(w)
			return
		}
	}
}

// rest lets no more happen and everything end: each answer comes, each event is delivered, each pod is
// tried. It fails when that does not come to an end.
func (w *world) rest() {
	heals := w.chance(50)
	w.calm = true
	if heals {
		w.leader.cut = false
	}
	// A leader that cannot renew gives way, whether or not it hears of it.
	if w.leader.elect(); !w.leader.holds() {
		w.succeed()
	}
	w.mend()
	for round := 0; ; round++ {
		if round == 300 {
			w.fail("the scheduler does not come to rest")
			break
		}
		w.leader.deliverAll()
		moved := len(w.late) > 0
		for len(w.late) > 0 {
			w.commitLate()
		}
		for _, p := range w.live(func(p *v1.Pod) bool { return p.DeletionTimestamp != nil }) {
			w.remove(p)
			moved = true
		}
		moved = w.leader.settleOne() || moved
		moved = w.leader.schedule() || moved
		moved = w.leader.bindOne() || moved
		moved = w.leader.resumeOne() || moved
		// Zombies end what they began. Each pod they try comes back to them, since they may place none.
		for _, z := range w.zombies {
			z.deliverAll()
			moved = z.settleOne() || moved
			moved = z.bindOne() || moved
			moved = z.resumeOne() || moved
		}
		if !moved {
			break
		}
	}
	for _, p := range w.alive() {
		p.deliverAll()
	}
	for _, z := range w.zombies {
		if w.failure == nil {
			w.checkLedger(z)
		}
	}
	if w.failure == nil {
		w.checkRest()
	}
	w.calm = false
	w.podLog, w.nodeLog = nil, nil
	for _, p := range w.alive() {
		p.podInformer.at, p.nodeInformer.at = 0, 0
	}
}

func (w *world) create() {
	name := fmt.Sprintf("p%02d", w.rng.IntN(40))
	if w.pods[name] != nil {
		return
	}
	w.uids++
	pod := &v1.Pod{ObjectMeta: objectMeta(name, w.uids)}
	pod.Spec.SchedulerName = contract.SchedulerName
	p := int32(w.rng.IntN(3))
	pod.Spec.Priority = &p
	n := w.names
	units := int64(1 + w.rng.IntN(12))
	switch w.rng.IntN(10) {
	case 0, 1, 2, 3:
		ledgertest.Memory(units)(pod)
	case 4:
		ledgertest.Slices(1 + units%4)(pod)
	case 5:
		ledgertest.Whole(1 + units%2)(pod)
	case 6:
		ledgertest.Init("init", n.ResourceMemory, units+2)(pod)
		ledgertest.App("a", n.ResourceMemory, 1+units/3)(pod)
		ledgertest.App("b", n.ResourceMemory, 1+units/4)(pod)
	case 7:
		ledgertest.Init("init", n.ResourceMemory, units)(pod)
		ledgertest.Sidecar("side", n.ResourceMemory, 2)(pod)
		ledgertest.Init("more", n.ResourceSlice, 2)(pod)
		ledgertest.App("a", n.ResourceMemory, 4)(pod)
	case 8:
		ledgertest.Memory(units / 2 * 2)(pod)
		if units > 1 {
			pod.Annotations[n.CardsKey] = "2"
		}
		if units < 2 {
			ledgertest.Memory(1)(pod)
			pod.Spec.Containers = pod.Spec.Containers[1:]
		}
	default:
		ledgertest.Init("init", n.ResourceWhole, 1)(pod)
		ledgertest.App("a", n.ResourceMemory, units)(pod)
	}
	if w.rng.IntN(6) == 0 {
		pod.Spec.NodeSelector = map[string]string{"pool": fmt.Sprintf("n%d", w.rng.IntN(3))}
	}
	w.note("create %s %s", name, pod.UID)
	w.write(pod, nil)
}

func (w *world) delete() {
	pod := w.pick(w.live(nil))
	switch {
	case pod == nil:
		for _, p := range w.pods { // all have ended
			if pod == nil || p.Name < pod.Name {
				pod = p
			}
		}
		if pod != nil {
			w.remove(pod)
		}
	case pod.DeletionTimestamp == nil && w.chance(40):
		now := objectMetaTime
		w.note("deletion of %s %s starts", pod.Name, pod.UID)
		w.write(pod, func(p *v1.Pod) { p.DeletionTimestamp = &now })
	default:
		w.remove(pod)
	}
}

func (w *world) complete() {
	if pod := w.pick(w.live(bound)); pod != nil {
		w.note("%s %s ends", pod.Name, pod.UID)
		w.write(pod, func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded })
		delete(w.ours, pod.UID)
		w.recorded(pod.UID)
		if w.chance(50) {
			w.remove(w.pods[pod.Name])
		}
	}
}

func (w *world) initialize() {
	pod := w.pick(w.live(func(p *v1.Pod) bool { return bound(p) && len(p.Status.Conditions) == 0 }))
	if pod != nil {
		w.note("%s %s is initialized", pod.Name, pod.UID)
		w.write(pod, ledgertest.Initialized)
	}
}

// annotate edits annotations that refine a request, some wrongly, and some that mean nothing.
func (w *world) annotate() {
	if pod := w.pick(w.live(nil)); pod != nil {
		w.write(pod, func(p *v1.Pod) {
			switch w.rng.IntN(3) {
			case 0:
				p.Annotations[w.names.PolicyKey] = []string{"binpack", "spread", "speard"}[w.rng.IntN(3)]
			case 1:
				delete(p.Annotations, w.names.PolicyKey)
			default:
				p.Annotations["note"] = fmt.Sprint(w.rv)
			}
		})
	}
}

// breakWatch makes an informer list anew.
func (w *world) breakWatch() {
	pods, nodes, version := w.lists()
	p := w.leader
	if all := w.alive(); w.chance(40) {
		p = all[w.rng.IntN(len(all))]
	}
	if w.chance(60) {
		w.note("the pod watch breaks")
		p.podInformer.relist(pods, version)
	} else {
		w.note("the node watch breaks")
		p.nodeInformer.relist(nodes, version)
	}
}
