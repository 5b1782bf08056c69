package gcufit

import (
	"errors"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
)

// Answers of the API server to a Binding.
func answer504AndStore(w *world, b *v1.Binding) error {
	if err := w.bind(b); err != nil {
		return err
	}
	return apierrors.NewTimeoutError("no answer", 1)
}

func answerLateThenNothing(w *world, b *v1.Binding) error {
	w.late = append(w.late, b)
	return errLost
}

func answerRefused(*world, *v1.Binding) error {
	return apierrors.NewForbidden(podResource, "a", errors.New("no"))
}

func answerStoredTwice(w *world, b *v1.Binding) error {
	if err := w.bind(b); err != nil {
		return err
	}
	return w.bind(b)
}

// Case 03 and 06: what a leader bound is charged by the next one, by a restarted one, and stays charged
// whatever became of other annotations.
func TestRestartKeepsWhatIsBound(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("p", ledgertest.Memory(12)), ledgertest.Pod("q", ledgertest.Memory(8)))
	f.deliverAll()
	standby := newProcess(f.w)
	standby.deliverAll() // has seen p unbound
	if !f.run("p") {
		t.Fatal("p is not bound")
	}
	f.kill()
	f.w.leader, f.process, f.ledger = standby, standby, standby.core.ledger
	ledgertest.Guard(t, f.ledger)
	if f.run("q") {
		t.Fatal("the standby sold the room of p")
	}
	f.w.write(f.w.pods["p"], func(p *v1.Pod) { delete(p.Annotations, ledgertest.Names.AssignedKey) })
	f.restart()
	if f.run("q") {
		t.Fatal("the restarted scheduler sold the room of p")
	}
	f.w.write(f.w.pods["p"], func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded })
	f.deliverAll()
	if !f.run("q") {
		t.Error("the room of a pod that ended did not come back")
	}
}

// Case 06 (a): the deletion falls into a break of the watch.
func TestDeletionInAWatchBreak(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("p", ledgertest.Memory(16)), ledgertest.Pod("q", ledgertest.Memory(8)))
	f.deliverAll()
	f.run("p")
	f.deliverAll()
	f.place("q")
	f.w.remove(f.w.pods["p"])
	pods, _, version := f.w.lists()
	f.podInformer.relist(pods, version)
	f.deliverAll()
	if e := f.entries["uid-q"]; e.state != active {
		t.Error("q was not woken")
	}
	if !f.run("q") {
		t.Error("q does not find the room of p")
	}
}

// Case 09: the Binding is stored and the answer lost; mirror: it is refused.
func TestLostAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		answer func(*world, *v1.Binding) error
		runs   bool
	}{
		"stored and lost":               {answer504AndStore, true},
		"stored, then sent again":       {answerStoredTwice, true},
		"refused":                       {answerRefused, false},
		"etcd fails, nothing is stored": {func(*world, *v1.Binding) error { return apierrors.NewInternalError(errors.New("etcd")) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, ledgertest.Node("n1", 16*gib))
			f.create(ledgertest.Pod("p", ledgertest.Memory(12)), ledgertest.Pod("q", ledgertest.Memory(8)))
			f.deliverAll()
			x, _ := f.place("p")
			f.answers = test.answer
			if got := f.bindNow(x).IsSuccess(); got != test.runs {
				t.Errorf("Bind succeeds: %t", got)
			}
			f.answers = nil
			f.plugin.Unreserve(t.Context(), x.state, x.pod, x.node) // once more than it should
			if test.runs {
				if f.run("q") {
					t.Error("q got the room of p, which runs")
				}
				f.deliverAll()
				f.w.checkRest()
				return
			}
			f.w.remove(f.w.pods["p"])
			f.deliverAll()
			f.settleOne()
			if !f.run("q") {
				t.Error("the room of p leaked")
			}
		})
	}
}

// A write to the pod between its scheduling cycle and its Binding makes the API server refuse the
// Binding; the same request is bound at the new version, a changed one is not.
func TestPodWrittenBeforeItsBinding(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*v1.Pod)
		want bool
	}{
		"a note":               {func(p *v1.Pod) { p.Annotations["note"] = "x" }, true},
		"another policy":       {func(p *v1.Pod) { p.Annotations[ledgertest.Names.PolicyKey] = "spread" }, false},
		"a deletion has begun": {func(p *v1.Pod) { now := objectMetaTime; p.DeletionTimestamp = &now }, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, ledgertest.Node("n1", 16*gib))
			f.create(ledgertest.Pod("p", ledgertest.Memory(12)))
			f.deliverAll()
			x, _ := f.place("p")
			f.w.write(f.w.pods["p"], test.edit)
			if got := f.bindNow(x).IsSuccess(); got != test.want || bound(f.w.pods["p"]) != test.want {
				t.Errorf("bound %t, want %t", got, test.want)
			}
			if h := f.ledger.Holder("uid-p"); (h != nil) != test.want {
				t.Errorf("holder %+v", h)
			}
		})
	}
}

// A pod in doubt that does not change by itself is written to, and the late Binding is then refused.
func TestFence(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("p", ledgertest.Memory(12)), ledgertest.Pod("q", ledgertest.Memory(8)))
	f.deliverAll()
	x, _ := f.place("p")
	f.place("q")
	f.answers = answerLateThenNothing
	f.bindNow(x)
	f.answers = nil
	if h := f.ledger.Holder("uid-p"); h == nil || h.State != ledger.Doubtful {
		t.Fatalf("holder %+v", h)
	}
	f.settleOne()
	if h := f.ledger.Holder("uid-p"); h != nil {
		t.Errorf("holder %+v after the fence", h)
	}
	if f.entries["uid-q"].state != active {
		t.Error("q was not woken when the doubt was settled")
	}
	f.w.commitLate()
	if bound(f.w.pods["p"]) {
		t.Error("the late Binding got past the fence")
	}
}

// Case 07, the dry run: the victims are exactly those whose room is needed.
func TestPreemptionDryRun(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(
		ledgertest.Pod("l", ledgertest.Memory(10), ledgertest.Recorded("n1", ledgertest.Share("app", "n1", 0, 10*gib))),
		ledgertest.Pod("k", ledgertest.Memory(4), ledgertest.Recorded("n1", ledgertest.Share("app", "n1", 0, 4*gib))),
		ledgertest.Pod("h", ledgertest.Memory(12), ledgertest.Priority(10)),
	)
	f.deliverAll()
	f.place("h")
	if f.w.pods["l"] != nil || f.w.pods["k"] == nil {
		t.Errorf("victims: l %t, k %t; want l alone", f.w.pods["l"] == nil, f.w.pods["k"] == nil)
	}
	// While l's end is not heard of, and after it, m must not take the room.
	f.create(ledgertest.Pod("m", ledgertest.Memory(6), ledgertest.Priority(5)))
	if x, _ := f.place("m"); x != nil {
		t.Error("m was placed while l runs")
	}
	f.deliverAll()
	if x, _ := f.place("m"); x != nil {
		t.Error("m took the room that h made")
	}
	if !f.run("h") {
		t.Error("h does not find the room it made")
	}
}

func TestPreemptionKnowsWhatItCannotCure(t *testing.T) {
	closed := ledgertest.Node("n1", 16*gib)
	delete(closed.Labels, ledgertest.Names.SharingLabel)
	f := newFixture(t, closed)
	state := newState()
	pod := ledgertest.Pod("p", ledgertest.Memory(4))
	if _, s := f.plugin.PreFilter(t.Context(), state, pod, nil); !s.IsSuccess() {
		t.Fatal(s.AsError())
	}
	if s := f.plugin.Filter(t.Context(), state, pod, nodeInfo{node: closed}); s.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("%v", s)
	}
}

// Case 14: three pods at once, and no event comes before all are bound.
func TestBurstWithoutEvents(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	for _, name := range []string{"a", "b", "c"} {
		f.create(ledgertest.Pod(name, ledgertest.Memory(8)))
	}
	f.podInformer.pumpAll()
	a, _ := f.place("a")
	b, _ := f.place("b")
	if c, _ := f.place("c"); a == nil || b == nil || c != nil {
		t.Fatalf("placed %t %t %t, want the first two", a != nil, b != nil, c != nil)
	}
	f.answers = answerRefused
	f.bindNow(a)
	f.answers = nil
	if !f.run("c") || !f.bindNow(b).IsSuccess() {
		t.Error("c does not get the room of a failed binding")
	}
}

// waiting.wake wakes as many as fit together, the most important first.
func TestWakeAsManyAsFit(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("big", ledgertest.Memory(16), ledgertest.Recorded("n1", ledgertest.Share("app", "n1", 0, 16*gib)), ledgertest.Priority(9)))
	f.deliverAll()
	for i := range 5 {
		f.create(ledgertest.Pod(fmt.Sprintf("w%d", i), ledgertest.Memory(6), ledgertest.Priority(int32(i))))
		f.deliverAll()
		f.place(fmt.Sprintf("w%d", i))
	}
	f.ledger.Release("uid-big")
	f.core.changed(t.Context(), "n1")
	for i := range 5 {
		if got := f.entries[f.w.pods[fmt.Sprintf("w%d", i)].UID].state == active; got != (i >= 3) {
			t.Errorf("w%d: awake %t", i, got)
		}
	}
}
