package placement

import (
	"math/bits"

	"github.com/topscloud/topscloud/gcushare/share"
)

// Weights say how much each part of a score counts. Only their ratio matters.
type Weights struct {
	// Topology: how close together the cards of one container are.
	Topology int64
	// Packing: how full the chosen cards and the node get (or, with policy spread, stay).
	Packing int64
	// Intact: how little the choice takes from groups of cards that larger jobs need whole.
	Intact int64
	// RightSize: how small the node's cards are, so that large cards stay for large jobs.
	RightSize int64
}

// Score rates a plan, 0 to 100. It looks at this node only: placing a pod elsewhere never changes it,
// which the scheduler's batching relies on.
func Score(n *Node, req *share.Request, p *Plan, w Weights) int64 {
	sum := w.Topology + w.Packing + w.Intact + w.RightSize
	if sum <= 0 {
		return 0
	}
	charges := p.Charges(n, req)
	total := w.Topology*int64(p.Closeness) +
		w.Packing*packing(n, req, charges) +
		w.Intact*intact(n, charges) +
		w.RightSize*rightSize(n)
	return total / sum
}

// packing is the fill of the chosen cards (twice) and of the node after the choice, in percent; with
// policy spread what is left of them.
func packing(n *Node, req *share.Request, charges []share.Charge) int64 {
	var nodeUsed, nodeTotal, cardUsed, cardTotal int64
	for i := range n.Cards {
		card := &n.Cards[i]
		used := card.UsedMiB
		for _, c := range charges {
			if c.Minor != card.Minor {
				continue
			}
			used = min(share.Add(used, c.MiB), card.TotalMiB)
			cardUsed, cardTotal = share.Add(cardUsed, used), share.Add(cardTotal, card.TotalMiB)
		}
		nodeUsed, nodeTotal = share.Add(nodeUsed, used), share.Add(nodeTotal, card.TotalMiB)
	}
	if nodeTotal == 0 || cardTotal == 0 {
		return 0
	}
	node, cards := nodeUsed*100/nodeTotal, cardUsed*100/cardTotal
	fill := node
	if req.Fractional() {
		fill = (2*cards + node) / 3
	}
	if req.Policy == share.Spread {
		return 100 - fill
	}
	return fill
}

// intact says how little a choice takes from groups of free cards that larger jobs need whole: 100 for
// lone cards or none at all, falling as the opened cards break pairs, fours and eights.
func intact(n *Node, charges []share.Charge) int64 {
	free := n.FreeSet()
	after := free
	for _, c := range charges {
		after = after.Without(c.Minor)
	}
	opened := int64(free.Len() - after.Len())
	if opened == 0 {
		return 100
	}
	// A lone card is worth 1, so the loss is at least the number of cards opened.
	loss := n.Tree.Value(free) - n.Tree.Value(after)
	return min(100, 200*opened/(loss+opened))
}

// rightSize falls by 20 for each doubling of the node's card memory above 8 GiB, so that the order of
// nodes follows their card size whatever sizes a cluster has (8 GiB to 256 GiB).
func rightSize(n *Node) int64 {
	mib := n.MemoryMiB
	if mib == 0 {
		for i := range n.Cards {
			mib = max(mib, n.Cards[i].TotalMiB)
		}
	}
	if mib <= 8<<10 {
		return 100
	}
	// Eighths of a doubling: 16384 and 32768 MiB differ by 20, 42976 and 49120 still by 4.
	whole := bits.Len64(uint64(mib)) - 1
	eighths := (mib - 1<<whole) * 8 >> whole
	steps := int64(whole-13)*8 + eighths
	return max(0, 100-steps*20/8)
}
