package ledger_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// Both names of whole cards are charged to the same cards, and each node must offer the name that is asked.
func TestAlias(t *testing.T) {
	t.Parallel()
	const alias = "enflame-tech.com/gcu"
	names, err := ledgertest.Names.WithAlias(alias)
	if err != nil {
		t.Fatal(err)
	}
	l := ledger.New(names)
	ledgertest.Guard(t, l)
	node := ledgertest.Node("n", 16*gib, 16*gib)
	node.Status.Allocatable[alias] = *resource.NewQuantity(2, resource.DecimalSI)
	l.ObserveNode(node)
	l.ObserveNode(ledgertest.Node("m", 16*gib))
	fits := func(node, resource string, cards int64) placement.Reason {
		t.Helper()
		req, err := share.Parse(names, ledgertest.Pod("q", ledgertest.App("app", resource, cards)), share.Defaults{})
		if err != nil {
			t.Fatal(err)
		}
		return placement.Fits(&l.Node(node).Node, req)
	}
	if got := fits("n", alias, 2); got != placement.Fit {
		t.Errorf("two cards of two: %v", got)
	}
	if got := fits("m", alias, 1); got != placement.NotRegistered {
		t.Errorf("a node without the second name: %v, want %v", got, placement.NotRegistered)
	}
	l.Observe(ledgertest.Pod("p", ledgertest.App("app", alias, 1), ledgertest.Recorded("n", contract.ContainerAllocation{
		Name: "app", Cards: []contract.CardAllocation{{Minor: 1, UUID: ledgertest.UUID("n", 1), MemoryMiB: 16 * gib, Whole: true}},
	})))
	n := l.Node("n")
	if c := n.Cards[1]; !c.Whole || c.UsedMiB != 16*gib || n.Requested != (share.Totals{share.Alias: 1}) {
		t.Errorf("card 1 after a pod by the second name: %+v, counted %v", c, n.Requested)
	}
	for resource, cards := range map[string]int64{alias: 2, names.ResourceWhole: 2} {
		if got := fits("n", resource, cards); got == placement.Fit {
			t.Errorf("%d more of %s: a card would be handed out twice", cards, resource)
		}
	}
	for _, resource := range []string{alias, names.ResourceWhole} {
		if got := fits("n", resource, 1); got != placement.Fit {
			t.Errorf("the card that is left, as %s: %v", v1.ResourceName(resource), got)
		}
	}
}
