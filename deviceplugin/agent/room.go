package agent

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// roomOf returns a node as the ledger sees it, with what the book holds for pods that the ledger does not
// know and whose processes run: their API objects were deleted by force, or a restored etcd has forgotten
// them. Pods that ended as they should are in the book for a moment longer; to count them would take units
// away from kubelet for that moment, and fail for good whatever pod it admits just then.
func roomOf(n *ledger.Node, book contract.Book, alive func(types.UID) bool) *placement.Node {
	out := n.Node
	out.Cards = slices.Clone(n.Cards)
	for _, p := range book.Pods {
		if n.Holder(types.UID(p.UID)) != nil || !alive(types.UID(p.UID)) {
			continue
		}
		for _, c := range p.Charges {
			i := out.Index(c.Minor)
			if i < 0 {
				continue
			}
			card := &out.Cards[i]
			card.UsedMiB = share.Add(card.UsedMiB, c.MemoryMiB)
			card.Holders++
			card.Whole = card.Whole || c.Whole
		}
	}
	return &out
}

// counted is what kubelet counts of a resource for the pods of a node.
func counted(n *ledger.Node, kind share.Kind) int64 {
	var sum int64
	for _, h := range n.Holders() {
		sum = share.Add(sum, h.Totals[kind])
	}
	return sum
}

// waiting returns the cards of each container with whole cards that has not got them yet.
func waiting(n *ledger.Node, book contract.Book) [][]int {
	type key struct{ uid, container string }
	has := map[key]bool{}
	for _, t := range book.Tickets {
		has[key{t.PodUID, t.Container}] = true
	}
	var out [][]int
	for _, h := range n.Holders() {
		for _, c := range h.Containers {
			if len(c.Cards) == 0 || !c.Cards[0].Whole || has[key{string(h.UID), c.Name}] {
				continue
			}
			var minors []int
			for _, card := range c.Cards {
				minors = append(minors, card.Minor)
			}
			slices.Sort(minors)
			out = append(out, minors)
		}
	}
	return out
}

// sharers names the pods that hold shares, sorted.
func sharers(n *ledger.Node, book contract.Book) []string {
	var out []string
	for _, h := range n.Holders() {
		if h.Totals[share.Memory] > 0 || h.Totals[share.Slices] > 0 {
			out = append(out, h.Namespace+"/"+h.Name)
		}
	}
	for _, p := range book.Pods {
		if n.Holder(types.UID(p.UID)) == nil && slices.ContainsFunc(p.Charges, func(c contract.BookCharge) bool { return !c.Whole }) {
			out = append(out, p.Namespace+"/"+p.Name)
		}
	}
	slices.Sort(out)
	return out
}
