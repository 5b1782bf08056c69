package gcufit

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/scheduler/lease"
)

// Leader R1 has placed A and is paused. R2 gets the lease, writes to A, and binds B to the room that A was to
// get. R1 wakes and does not know. Without the fence in Bind it meets a conflict, reads A anew, finds it
// unbound and asking for the same, and binds it to B's room at the version that R2 made.
func TestLeaderThatDoesNotKnow(t *testing.T) {
	r1 := newElectedFixture(t, ledgertest.Node("n1", 16*gib))
	r1.create(ledgertest.Pod("a", ledgertest.Memory(12)), ledgertest.Pod("b", ledgertest.Memory(8)))
	r1.deliverAll()
	a, _ := r1.place("a")
	r2 := r1.successor()
	if !r2.run("b") {
		t.Fatal("b fits and is not bound")
	}
	if s := r1.bindNow(a); !errors.Is(s.AsError(), lease.ErrNotHeld) {
		t.Errorf("bind by the leader before: %v", s.AsError())
	}
	if bound(r1.w.pods["a"]) {
		t.Error("a was bound by a process that does not lead")
	}
	if h := r1.ledger.Holder("uid-a"); h != nil {
		t.Errorf("what was reserved is kept: %+v", h)
	}
	if r1.cycle(r1.entries["uid-a"]); len(r1.binding) > 0 {
		t.Error("a process that does not lead places pods")
	}
}

// The same, but R1 is paused after it passed the fence and before the Binding is sent. What it sent is
// refused by the version; the next try must ask the fence again.
func TestPausedBehindTheFence(t *testing.T) {
	r1 := newElectedFixture(t, ledgertest.Node("n1", 16*gib))
	r1.create(ledgertest.Pod("a", ledgertest.Memory(12)), ledgertest.Pod("b", ledgertest.Memory(8)))
	r1.deliverAll()
	a, _ := r1.place("a")
	tries := 0
	r1.answers = func(w *world, b *v1.Binding) error {
		if tries++; tries == 1 && !r1.successor().run("b") {
			t.Fatal("b fits and is not bound")
		}
		return w.bind(b)
	}
	if s := r1.bindNow(a); !errors.Is(s.AsError(), lease.ErrNotHeld) {
		t.Errorf("bind by the leader before: %v", s.AsError())
	}
	if bound(r1.w.pods["a"]) || tries != 1 {
		t.Errorf("a is bound: %t, tried %d times", bound(r1.w.pods["a"]), tries)
	}
}

// R1 wakes when R2 has ended and given up the lease, and gets it again. It holds the lease, so the fence is
// open; but what it placed before rests on a ledger without B, and so does what it would place now, since
// its watch lags.
func TestLeaseLostAndGotAgain(t *testing.T) {
	r1 := newElectedFixture(t, ledgertest.Node("n1", 16*gib))
	r1.create(ledgertest.Pod("a", ledgertest.Memory(12)), ledgertest.Pod("b", ledgertest.Memory(8)), ledgertest.Pod("c", ledgertest.Memory(10)))
	r1.deliverAll()
	a, _ := r1.place("a")
	r2 := r1.successor()
	if !r2.run("b") {
		t.Fatal("b fits and is not bound")
	}
	r2.release()
	r2.kill()
	r1.elect()
	if !r1.holds() {
		t.Fatal("the lease was given up and is not got")
	}
	if s := r1.bindNow(a); !errors.Is(s.AsError(), lease.ErrNotHeld) || bound(r1.w.pods["a"]) {
		t.Errorf("what was placed in the term before is bound in this one: %v", s.AsError())
	}
	if x, _ := r1.place("c"); x != nil {
		t.Error("c got the room of b, which the other leader bound")
	}
	r1.w.rest()
}
