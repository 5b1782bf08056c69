package gcufit

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
)

// Case 07 on a node of several cards. Pod H is nominated, its victim L still ends on card 0. The room kept
// for H must be that of card 0 and not of the emptiest card, or pod M takes it, and H has preempted for
// nothing.
func TestRoomIsKeptOnTheVictimsCard(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib, 16*gib, 16*gib))
	held := func(name string, priority int32, minor int, units int64) *v1.Pod {
		return ledgertest.Pod(name, ledgertest.Memory(units), ledgertest.Priority(priority),
			ledgertest.Recorded("n1", ledgertest.Share("app", "n1", minor, units*gib)))
	}
	f.create(held("l", 0, 0, 8), held("k1", 100, 1, 6), held("k2", 100, 2, 9), ledgertest.Pod("h", ledgertest.Memory(12), ledgertest.Priority(10)))
	f.deliverAll()
	f.place("h")
	if f.nominated["uid-h"] != "n1" {
		t.Fatalf("h is nominated to %q", f.nominated["uid-h"])
	}
	f.create(ledgertest.Pod("m", ledgertest.Memory(8), ledgertest.Priority(5)))
	f.podInformer.pumpAll() // the end of l is not heard of yet
	f.nodeInformer.pump()
	// m fits card 1 beside k1, and card 0 too if nobody kept that for h.
	x, _ := f.place("m")
	if x == nil {
		t.Fatal("m does not fit, and card 1 has 10 units free")
	}
	if got := f.ledger.Holder("uid-m").Charges()[0].Minor; got != 1 {
		t.Errorf("m was given card %d, want 1", got)
	}
	if s := f.bindNow(x); !s.IsSuccess() {
		t.Error(s)
	}
	f.deliverAll()
	if !f.run("h") {
		t.Error("h has no room after its victim is gone")
	}
}

// Filter shows nominated pods only to Filter, so Reserve counts them for itself: here the pod's cycle took
// its view before H was nominated.
func TestReserveKeepsOffNominatedRoom(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("h", ledgertest.Memory(12), ledgertest.Priority(10)), ledgertest.Pod("m", ledgertest.Memory(8), ledgertest.Priority(5)))
	f.deliverAll()
	m, state := f.w.pods["m"], newState()
	if _, s := f.plugin.PreFilter(t.Context(), state, m, nil); !s.IsSuccess() {
		t.Fatal(s.AsError())
	}
	f.nominated["uid-h"] = "n1"
	if s := f.plugin.Reserve(t.Context(), state, m, "n1"); s.IsSuccess() {
		t.Error("m was reserved into the room of h")
	} else if s.Code() != fwk.Error || !strings.Contains(s.Message(), "room was taken") {
		t.Errorf("status %v, want an error that says the room was taken", s)
	}
	h, state := f.w.pods["h"], newState()
	if _, s := f.plugin.PreFilter(t.Context(), state, h, nil); !s.IsSuccess() {
		t.Fatal(s.AsError())
	}
	if s := f.plugin.Reserve(t.Context(), state, h, "n1"); !s.IsSuccess() {
		t.Errorf("h itself: %v", s)
	}
}

// M was woken for a node and turned away because H is nominated there. H finds its place elsewhere; the
// node's holders are the same as when M was turned away, and M is woken all the same.
func TestNominationThatLeavesWakes(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("h", ledgertest.Memory(12), ledgertest.Priority(10)), ledgertest.Pod("m", ledgertest.Memory(8), ledgertest.Priority(5)))
	f.deliverAll()
	f.nominated["uid-h"] = "n1"
	f.place("m")
	f.core.changed(t.Context(), "n1")
	f.place("m")
	if got := f.entries["uid-m"].state; got != sleeping {
		t.Fatalf("m is in state %v with h nominated", got)
	}
	delete(f.nominated, "uid-h")
	f.core.waitsNoMore(t.Context(), "uid-h", "n2")
	if got := f.entries["uid-m"].state; got != active {
		t.Errorf("m is in state %v after h went elsewhere", got)
	}
}

// X was woken and is refused for what it asks by now; the room it was woken for goes to the next.
func TestRefusedPodPassesItsChanceOn(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(
		ledgertest.Pod("l", ledgertest.Memory(16), ledgertest.Priority(100), ledgertest.Recorded("n1", ledgertest.Share("app", "n1", 0, 16*gib))),
		ledgertest.Pod("x", ledgertest.Memory(16), ledgertest.Priority(10)),
		ledgertest.Pod("m", ledgertest.Memory(8), ledgertest.Priority(5)),
	)
	f.deliverAll()
	f.place("x")
	f.place("m")
	f.w.write(f.w.pods["x"], func(p *v1.Pod) { p.Annotations[ledgertest.Names.PolicyKey] = "bad" })
	f.deliverAll()
	f.place("x")
	f.ledger.Release("uid-l")
	f.core.changed(t.Context(), "n1")
	if got := f.entries["uid-m"].state; got != active {
		t.Errorf("m is in state %v, and the card is free", got)
	}
}

// A pod refused for the size of its annotations is looked at again when one gets shorter.
func TestShortenedAnnotationWakes(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	was := ledgertest.Pod("q", ledgertest.Memory(8), ledgertest.Annotate("note", strings.Repeat("x", 262000)))
	now := ledgertest.Pod("q", ledgertest.Memory(8), ledgertest.Annotate("note", "short"))
	if _, s := f.plugin.PreFilter(t.Context(), newState(), was, nil); s.IsSuccess() {
		t.Error("the long annotation was accepted")
	}
	if _, s := f.plugin.PreFilter(t.Context(), newState(), now, nil); !s.IsSuccess() {
		t.Errorf("the short annotation: %v", s)
	}
	if hint, err := f.plugin.afterOwnUpdate(klog.Background(), was, was, now); hint != fwk.Queue || err != nil {
		t.Errorf("hint %v, error %v", hint, err)
	}
}

// A pod that cannot be written to at take-over holds up the others for as long as a former Binding of it
// could still come, and no longer.
func TestTakeOverGoesOnWithoutAPod(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("big", ledgertest.Memory(4)), ledgertest.Pod("q", ledgertest.Memory(8)))
	f.restart()
	now := time.Unix(1, 0)
	f.core.takeover.now = func() time.Time { return now }
	f.w.unwritable = "big"
	_, err := f.core.ready(t.Context())
	if err == nil || !strings.Contains(err.Error(), "1 of 2 waiting pods cannot be written to") || !strings.Contains(err.Error(), "1m10s") {
		t.Fatalf("first try: %v", err)
	}
	now = now.Add(grace - time.Second)
	if _, err := f.core.ready(t.Context()); err == nil {
		t.Error("the take-over went on while a Binding could still come")
	}
	now = now.Add(time.Second)
	if _, err := f.core.ready(t.Context()); err != nil {
		t.Errorf("after the grace: %v", err)
	}
}
