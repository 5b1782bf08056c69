package gcufit

import (
	"testing"

	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
)

// A doubt is settled after pod Q's cycle took its view and before Q is noted as waiting: no event speaks
// of it, and whoever was to be woken was woken already.
func TestRoomThatCameDuringTheCycle(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("p", ledgertest.Memory(12)), ledgertest.Pod("q", ledgertest.Memory(8)))
	f.deliverAll()
	if x, _ := f.place("p"); x == nil {
		t.Fatal("p does not fit")
	}
	f.ledger.Doubt("uid-p")
	q, state := f.entries["uid-q"], newState()
	if _, s := f.plugin.PreFilter(t.Context(), state, q.pod, nil); !s.IsSuccess() {
		t.Fatal(s.AsError())
	}
	f.ledger.Settle("uid-p")
	f.core.changed(t.Context(), "n1")
	q.state = sleeping
	f.plugin.PostFilter(t.Context(), state, q.pod, nodeStatuses{})
	if q.state != active {
		t.Error("q sleeps, and there is room")
	}
}
