package ledger_test

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// Room set aside for a pod over two cards is on two cards.
func TestClaimOverTwoCards(t *testing.T) {
	l := ledgertest.New(t)
	l.ObserveNode(ledgertest.Node("n1", 16<<10, 16<<10, 16<<10))
	pod := ledgertest.Pod("p", ledgertest.Memory(24), ledgertest.Annotate(ledgertest.Names.CardsKey, "2"))
	req, err := share.Parse(ledgertest.Names, pod, share.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	n := l.Node("n1").With(ledger.Claim(pod, "n1", req))
	for i, want := range []int64{12 << 10, 12 << 10, 0} {
		if got := n.Cards[i].UsedMiB; got != want {
			t.Errorf("card %d: %d MiB set aside, want %d", i, got, want)
		}
	}
}

// A claim never takes more than is free, and never makes a node look overcommitted.
func TestClaimOnHeldCards(t *testing.T) {
	l := ledgertest.New(t)
	l.ObserveNode(ledgertest.Node("n1", 16<<10))
	l.Observe(ledgertest.Pod("l", ledgertest.Memory(10), ledgertest.Recorded("n1", ledgertest.Share("app", "n1", 0, 10<<10))))
	for name, ask := range map[string]func(*v1.Pod){"share": ledgertest.Memory(12), "whole": ledgertest.Whole(1)} {
		pod := ledgertest.Pod(name, ask)
		req, err := share.Parse(ledgertest.Names, pod, share.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		record := []contract.ContainerAllocation{ledgertest.Share("app", "n1", 0, 12<<10)}
		n := l.Node("n1").With(ledger.ClaimOn(pod, "n1", req, record))
		if n.Cards[0].UsedMiB != 16<<10 || n.Closed != placement.Open {
			t.Errorf("%s: %d MiB used, closure %d; want all of the card and an open node", name, n.Cards[0].UsedMiB, n.Closed)
		}
	}
}

// Kubelet takes the units of a sick card out of allocatable, so the pods on it do not count against it.
func TestPodsOnASickCardAreNotCounted(t *testing.T) {
	l := ledgertest.New(t)
	d := contract.NodeDevices{MemoryUnitMiB: 1024, SliceCount: 6, Devices: []contract.NodeDevice{ledgertest.Card("n1", 0, 16<<10), ledgertest.Card("n1", 1, 16<<10)}}
	d.Devices[0].Health = "HBM ECC errors"
	l.ObserveNode(ledgertest.NodeOf("n1", d)) // 16 units allocatable, of card 1
	l.Observe(ledgertest.Pod("on-sick", ledgertest.Memory(12), ledgertest.Recorded("n1", ledgertest.Share("app", "n1", 0, 12<<10))))
	if got := l.Node("n1").Requested[share.Memory]; got != 0 {
		t.Errorf("%d units counted, want none", got)
	}
	req, err := share.Parse(ledgertest.Names, ledgertest.Pod("q", ledgertest.Memory(16)), share.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	if why := placement.Fits(&l.Node("n1").Node, req); why != placement.Fit {
		t.Errorf("all of the healthy card does not fit: reason %d", why)
	}
}

// A record with less than the container's limit closes its node: kubelet gives the container the limit.
func TestRecordBelowTheLimit(t *testing.T) {
	l := ledgertest.New(t)
	l.ObserveNode(ledgertest.Node("n1", 41<<10))
	l.Observe(ledgertest.Pod("forged", ledgertest.Memory(8), ledgertest.Recorded("n1", ledgertest.Share("app", "n1", 0, 1))))
	n := l.Node("n1")
	if n.Closed != placement.BadRecord || len(n.Problems) != 1 || !strings.Contains(n.Problems[0].Text, "the record has 1 MiB, its limit is 8192 MiB") {
		t.Errorf("closure %d, problems %+v", n.Closed, n.Problems)
	}
	l.Gone("uid-forged")
	if n := l.Node("n1"); n.Closed != placement.Open {
		t.Errorf("closure %d after the pod is gone", n.Closed)
	}
}

// A static pod may not ask for GCU: nobody can place it, and nobody can delete it by its API object.
func TestStaticPodClosesItsNode(t *testing.T) {
	l := ledgertest.New(t)
	l.ObserveNode(ledgertest.Node("n1", 16<<10))
	l.Observe(ledgertest.Pod("static", ledgertest.Memory(8), ledgertest.On("n1"), ledgertest.Annotate(v1.MirrorPodAnnotationKey, "hash")))
	n := l.Node("n1")
	if n.Closed != placement.BadRecord || len(n.Problems) != 1 || !strings.Contains(n.Problems[0].Text, "take the limit out of its manifest") {
		t.Errorf("closure %d, problems %+v", n.Closed, n.Problems)
	}
}
