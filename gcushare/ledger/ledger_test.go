package ledger_test

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

const gib = 1024

// plan makes the holder that a pod of units would be on a card.
func plan(t testing.TB, pod *v1.Pod, node string, entry contract.ContainerAllocation) *ledger.Holder {
	t.Helper()
	req, err := share.Parse(ledgertest.Names, pod, share.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Plan(pod, node, req, []contract.ContainerAllocation{entry})
}

// assumed is a pod of 12 units on card 0 of node n.
func assumed(t testing.TB) *ledger.Holder {
	return plan(t, ledgertest.Pod("a", ledgertest.Memory(12), ledgertest.Version("5")), "n", ledgertest.Share("app", "n", 0, 12*gib))
}

func used(t testing.TB, l *ledger.Ledger, minor int) int64 {
	t.Helper()
	n := l.View().Node("n")
	return n.Cards[n.Index(minor)].UsedMiB
}

func TestAssumeRefuses(t *testing.T) {
	t.Parallel()
	pod := func(units int64) *v1.Pod { return ledgertest.Pod("b", ledgertest.Memory(units)) }
	private := ledgertest.Node("n", 16*gib)
	delete(private.Labels, ledgertest.Names.SharingLabel)
	tests := map[string]struct {
		prepare func(*ledger.Ledger)
		h       *ledger.Holder
		want    error
	}{
		"a card without room":            {func(l *ledger.Ledger) {}, plan(t, pod(5), "n", ledgertest.Share("app", "n", 0, 5*gib)), ledger.ErrNoRoom},
		"a whole card that is shared":    {func(l *ledger.Ledger) {}, plan(t, ledgertest.Pod("b", ledgertest.Whole(1)), "n", ledgertest.Exclusive("app", "n", 0, 16*gib)), ledger.ErrNoRoom},
		"an unknown node":                {func(l *ledger.Ledger) {}, plan(t, pod(1), "m", ledgertest.Share("app", "m", 0, gib)), ledger.ErrUnknownDevice},
		"an unknown minor":               {func(l *ledger.Ledger) {}, plan(t, pod(1), "n", ledgertest.Share("app", "n", 7, gib)), ledger.ErrUnknownDevice},
		"a card exchanged since":         {func(l *ledger.Ledger) {}, plan(t, pod(1), "n", contract.ContainerAllocation{Name: "app", Cards: []contract.CardAllocation{{UUID: "GCU-old", MemoryMiB: gib}}}), ledger.ErrUnknownDevice},
		"a pod that is charged already":  {func(l *ledger.Ledger) {}, assumed(t), ledger.ErrConflict},
		"a pod that was released":        {func(l *ledger.Ledger) { l.Release("uid-b") }, plan(t, pod(1), "n", ledgertest.Share("app", "n", 0, gib)), ledger.ErrConflict},
		"a node that stopped sharing":    {func(l *ledger.Ledger) { private.ResourceVersion = "2"; l.ObserveNode(private) }, plan(t, pod(1), "n", ledgertest.Share("app", "n", 0, gib)), ledger.ErrNoRoom},
		"a node without Node object":     {func(l *ledger.Ledger) { l.RemoveNode("n", "2") }, plan(t, pod(1), "n", ledgertest.Share("app", "n", 0, gib)), ledger.ErrUnknownDevice},
		"a holder that is not in flight": {func(l *ledger.Ledger) {}, ledger.ReadHolder(ledgertest.Names, ledgertest.Pod("b", ledgertest.Memory(1), ledgertest.Recorded("n", ledgertest.Share("app", "n", 0, gib)))), ledger.ErrConflict},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := ledgertest.New(t)
			l.ObserveNode(ledgertest.Node("n", 16*gib, 16*gib))
			if err := l.Assume(assumed(t)); err != nil {
				t.Fatal(err)
			}
			test.prepare(l)
			before := l.Dump()
			if err := l.Assume(test.h); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if after := l.Dump(); after != before {
				t.Errorf("a refused Assume changed\n%s\nto\n%s", before, after)
			}
		})
	}
}

func TestForgetIsTheInverseOfAssume(t *testing.T) {
	t.Parallel()
	l := ledgertest.New(t)
	l.ObserveNode(ledgertest.Node("n", 16*gib))
	empty := l.Dump()
	h := assumed(t)
	for range 3 {
		if err := l.Assume(h); err != nil {
			t.Fatal(err)
		}
		if used(t, l, 0) != 12*gib {
			t.Fatalf("used %d", used(t, l, 0))
		}
		l.Forget(h.UID)
		l.Forget(h.UID) // idempotent
		if got := l.Dump(); got != empty {
			t.Fatalf("after Forget:\n%s\nwant\n%s", got, empty)
		}
	}
}

func TestForgetTouchesNothingThatMayRun(t *testing.T) {
	t.Parallel()
	l := ledgertest.New(t)
	l.ObserveNode(ledgertest.Node("n", 16*gib))
	if err := l.Assume(assumed(t)); err != nil {
		t.Fatal(err)
	}
	l.Doubt("uid-a")
	l.Forget("uid-a")
	if got := used(t, l, 0); got != 12*gib {
		t.Errorf("a doubtful pod holds %d MiB after Forget", got)
	}
	// The API shows it unbound, but at the version its Binding names: that Binding can still be stored.
	l.Observe(ledgertest.Pod("a", ledgertest.Memory(12), ledgertest.Version("5")))
	if got := used(t, l, 0); got != 12*gib {
		t.Errorf("a doubtful pod holds %d MiB after its own version was seen", got)
	}
	// At a later version it cannot.
	if got := l.Observe(ledgertest.Pod("a", ledgertest.Memory(12), ledgertest.Version("6"))); got != ledger.Freed {
		t.Errorf("outcome %v", got)
	}
	if got := used(t, l, 0); got != 0 {
		t.Errorf("a fenced pod holds %d MiB", got)
	}
}

func TestReleasedPodsStayReleased(t *testing.T) {
	t.Parallel()
	l := ledgertest.New(t)
	l.ObserveNode(ledgertest.Node("n", 16*gib))
	running := ledgertest.Pod("a", ledgertest.Memory(12), ledgertest.Recorded("n", ledgertest.Share("app", "n", 0, 12*gib)))
	l.Observe(running)
	ended := running.DeepCopy()
	ended.Status.Phase = v1.PodSucceeded
	if got := l.Observe(ended); got != ledger.Freed {
		t.Errorf("outcome %v", got)
	}
	// A slower watcher brings the pod as it ran.
	l.Observe(running)
	if got := used(t, l, 0); got != 0 {
		t.Errorf("a late event charged %d MiB", got)
	}
	// The ordered stream has passed the deletion: another watcher's late event still charges nothing.
	l.Gone(running.UID)
	l.Foresee(running, false)
	if got := used(t, l, 0); got != 0 {
		t.Errorf("an event after the deletion charged %d MiB", got)
	}
}

func TestTheLaterVersionWins(t *testing.T) {
	t.Parallel()
	l := ledgertest.New(t)
	l.ObserveNode(ledgertest.Node("n", 16*gib, 16*gib))
	at := func(version string, minor int) *v1.Pod {
		return ledgertest.Pod("a", ledgertest.Memory(12), ledgertest.Recorded("n", ledgertest.Share("app", "n", minor, 12*gib)), ledgertest.Version(version))
	}
	l.Observe(at("9", 1))
	l.Observe(at("10", 0)) // compared as numbers
	l.Observe(at("9", 1))
	if used(t, l, 0) != 12*gib || used(t, l, 1) != 0 {
		t.Errorf("cards hold %d and %d MiB", used(t, l, 0), used(t, l, 1))
	}
}

// The node is deleted while the watch is down. The list afterwards says so with the state last seen, at
// version 5; a slower watcher then brings that same state. The node must not come back by it.
func TestDeletedNodesStayDeleted(t *testing.T) {
	t.Parallel()
	l := ledgertest.New(t)
	node := ledgertest.Node("n", 16*gib)
	node.ResourceVersion = "5"
	l.ObserveNode(node)
	l.RemoveNode("n", "5")
	l.ObserveNode(node)
	if got := l.View().Len(); got != 0 {
		t.Errorf("%d nodes", got)
	}
	node = node.DeepCopy()
	node.ResourceVersion = "6"
	if l.ObserveNode(node); l.View().Len() != 1 {
		t.Error("a node made anew is not seen")
	}
	if n := l.View().Node("n"); n.Closed != placement.Open {
		t.Errorf("closed: %v", n.Closed)
	}
}
