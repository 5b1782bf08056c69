package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// Dump returns the whole ledger as text, one line a node, card and holder, sorted: two ledgers with
// the same content give the same text.
func (l *Ledger) Dump() string {
	v := l.View()
	nodes := slices.SortedFunc(v.Nodes(), func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "node %s unit=%d slices=%d sharing=%t closed=%d allocatable=%v requested=%v\n",
			n.Name, n.UnitMiB, n.SliceCount, n.Sharing, n.Closed, n.Allocatable, n.Requested)
		for i := range n.Cards {
			c := &n.Cards[i]
			fmt.Fprintf(&b, "  card %d %s used=%d/%d holders=%d whole=%t sick=%t cordoned=%t swapped=%t\n",
				c.Minor, c.UUID, c.UsedMiB, c.TotalMiB, c.Holders, c.Whole, c.Sick, c.Cordoned, c.Swapped)
		}
		for _, h := range n.holders {
			fmt.Fprintf(&b, "  holder %s %s/%s %s charges=%v\n", h.UID, h.Namespace, h.Name, h.State, n.ChargesOf(h))
		}
	}
	return b.String()
}
