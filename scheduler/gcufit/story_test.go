package gcufit

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
)

const gib = 1024

// Each story here was found by TestModel or while it was written.

// Pod A's Binding is stored and its answer is lost. kube-scheduler then reports "assigned pod deleted"
// about A, which runs, to wake what might fit now; Q sleeps and its hint is asked. The hint took that for
// A's end, freed its room and gave it to Q; and it never let A be charged again.
func TestFailedBindingIsNoDeletion(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("a", ledgertest.Memory(12)), ledgertest.Pod("q", ledgertest.Memory(8)))
	f.deliverAll()
	a, _ := f.place("a")
	if x, _ := f.place("q"); x != nil {
		t.Fatal("q found room beside a")
	}
	f.answers = answer504AndStore
	if s := f.bindNow(a); !s.IsSuccess() {
		t.Fatalf("a runs with its record, and Bind says %v", s.AsError())
	}
	f.gone(a.pod) // as kube-scheduler does when a Binding failed
	if got := f.used("n1", 0); got != 12*gib {
		t.Errorf("card 0 holds %d MiB, and a runs", got)
	}
	f.deliverAll()
	f.w.checkRest()
}

// The same with an answer that nobody knows: the Binding is on its way while the report comes.
func TestDoubtfulBindingIsNoDeletion(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("a", ledgertest.Memory(12)), ledgertest.Pod("q", ledgertest.Memory(8)))
	f.deliverAll()
	a, _ := f.place("a")
	f.place("q")
	f.answers = answerLateThenNothing
	if s := f.bindNow(a); s.IsSuccess() {
		t.Fatal("Bind knows what nobody knows")
	}
	if h := f.ledger.Holder("uid-a"); h == nil || h.State != ledger.Doubtful {
		t.Fatalf("holder %+v", h)
	}
	if f.run("q") {
		t.Fatal("q got the room of a, whose Binding is on its way")
	}
	f.w.commitLate()
	f.settleOne()
	f.deliverAll()
	if got := f.used("n1", 0); got != 12*gib {
		t.Errorf("card 0 holds %d MiB", got)
	}
	f.w.checkRest()
}

// Leader R1 sends the Binding of A and dies. R2 leads, sees A unbound and binds B. Then the API server
// comes to A's Binding.
func TestBindingOfTheLeaderBefore(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("a", ledgertest.Memory(12)), ledgertest.Pod("b", ledgertest.Memory(8)))
	f.deliverAll()
	a, _ := f.place("a")
	b, err := f.plugin.newBinding(a.pod, a.node, f.ledger.Holder("uid-a"), readCycle(a.state).req)
	if err != nil {
		t.Fatal(err)
	}
	f.w.late = append(f.w.late, b)
	f.restart()
	if !f.run("b") {
		t.Fatal("b fits and is not bound")
	}
	f.w.commitLate()
	if bound(f.w.pods["a"]) {
		t.Error("a Binding of the leader before took effect after the new one gave its room away")
	}
	f.deliverAll()
	f.w.checkRest()
}

// What R1 bound before it died is not in R2's informers yet, and is deleted in a gap of R2's watch, so
// that no event ever speaks of it.
func TestPodThatCameAndWentInAGap(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("a", ledgertest.Memory(12)), ledgertest.Pod("q", ledgertest.Memory(8)))
	standby := newProcess(f.w)
	standby.deliverAll()
	a := f.w.write(f.w.pods["a"], ledgertest.Recorded("n1", ledgertest.Share("app", "n1", 0, 12*gib)))
	f.kill()
	f.w.leader = standby
	f.process, f.ledger = standby, standby.core.ledger
	ledgertest.Guard(t, f.ledger)
	if x, _ := f.place("q"); x != nil {
		t.Fatal("the new leader does not know what the one before bound last")
	}
	if got := f.used("n1", 0); got != 12*gib {
		t.Fatalf("card 0 holds %d MiB", got)
	}
	f.w.remove(a)
	pods, _, version := f.w.lists()
	f.podInformer.relist(pods, version)
	for f.podInformer.feed.next() {
	}
	f.w.rest()
	if !bound(f.w.pods["q"]) {
		t.Error("the room of a pod that is gone never came back")
	}
}

// While the settler's read of pod A travels, A is deleted, and another pod of its name is made, placed
// and gets into doubt itself. "Not found" says nothing about that one.
func TestPodOfTheSameNameInDoubt(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("a", ledgertest.Memory(12)))
	f.deliverAll()
	first, _ := f.place("a")
	f.answers = answerLateThenNothing
	f.bindNow(first)
	f.w.remove(f.w.pods["a"])
	f.beforeAnswer = func() {
		f.beforeAnswer = nil
		again := ledgertest.Pod("a", ledgertest.Memory(12))
		again.UID = "uid-again"
		f.create(again)
		f.deliverAll()
		x, _ := f.place("a")
		if x == nil {
			t.Fatal("the second pod found no room")
		}
		f.bindNow(x)
	}
	f.core.settler.settle(types.NamespacedName{Namespace: "default", Name: "a"})
	if h := f.ledger.Holder("uid-again"); h == nil || h.State != ledger.Doubtful {
		t.Errorf("the pod made anew is %+v, and its Binding is on its way", h)
	}
	f.answers = nil
	f.w.rest()
}

// Bind reads a pod after a lost answer. While that answer travels, the pod's binding and its deletion
// come through the feed. What was read must not charge the pod once more: nothing would free it.
func TestReadingOlderThanTheDeletion(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("a", ledgertest.Memory(12)))
	f.deliverAll()
	x, _ := f.place("a")
	f.answers = answer504AndStore
	f.beforeAnswer = func() {
		f.beforeAnswer = nil
		f.deliverAll()
		f.w.remove(f.w.pods["a"])
		f.deliverAll()
	}
	f.bindNow(x)
	if got := f.used("n1", 0); got != 0 {
		t.Errorf("card 0 holds %d MiB for a pod that is gone", got)
	}
}

// A is bound by another scheduler, starts and is deleted. The feed has heard of all that, the scheduling
// queue of nothing: A is placed. Then the queue's listener hears that A starts, and Q's hint tells the
// ledger, which took A for a running pod. The feed has no more to say about A, and no pod sleeps any more
// whose hint would be asked about A's end: A was charged for ever.
func TestPlacedAfterItsEnd(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("a", ledgertest.Memory(12)), ledgertest.Pod("q", ledgertest.Memory(16)))
	f.deliverAll()
	e := f.entries["uid-a"]
	a := f.w.write(f.w.pods["a"], func(p *v1.Pod) { p.Spec.NodeName = "n1" })
	f.w.remove(f.w.write(a, ledgertest.Initialized))
	for f.podInformer.pump() || f.podInformer.feed.next() {
	}
	f.cycle(e)
	q := f.entries["uid-q"]
	q.state = sleeping
	f.podInformer.hints.next() // bound
	f.podInformer.hints.next() // initialized
	q.state = active
	f.podInformer.hints.next() // deleted
	for len(f.binding) > 0 {
		f.bindNow(f.binding[0])
	}
	if got := f.used("n1", 0); got != 0 {
		t.Errorf("card 0 holds %d MiB for a pod that is gone", got)
	}
}

// H is nominated to n1 and keeps M out there; then H is bound to n2. No event speaks of n1.
func TestNominatedPodFindsRoomElsewhere(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib), ledgertest.Node("n2", 16*gib))
	on := func(pool string) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": pool} }
	}
	f.create(
		ledgertest.Pod("big", ledgertest.Memory(16), ledgertest.Recorded("n2", ledgertest.Share("app", "n2", 0, 16*gib))),
		ledgertest.Pod("h", ledgertest.Memory(12), ledgertest.Priority(10), func(p *v1.Pod) { p.Status.NominatedNodeName = "n1" }),
		ledgertest.Pod("m", ledgertest.Memory(8), on("n1")),
	)
	f.deliverAll()
	if x, _ := f.place("m"); x != nil {
		t.Fatal("m took the room of h")
	}
	f.w.remove(f.w.pods["big"])
	f.deliverAll()
	m := f.entries["uid-m"]
	m.state = sleeping
	delete(f.nodes, "n1") // h goes to n2
	if x, _ := f.place("h"); x == nil || x.node != "n2" {
		t.Fatal("h found no room on n2")
	}
	if m.state != active {
		t.Error("m sleeps on")
	}
}
