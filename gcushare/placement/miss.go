package placement

import (
	"fmt"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// Miss gathers, over the nodes it sees, how near they come to a request that fits none of them.
type Miss struct {
	req *share.Request
	// hard is the container that is hardest to place alone.
	hard *share.Container

	seen       bool
	units      int64 // most free units or slices on one card
	cards      int   // most cards of one node with what is asked free
	group      int   // most of them on one switch or NUMA node
	together   bool  // some node fits each container alone
	looserFits bool  // some node fits without the topology wish
}

// NewMiss starts gathering for a request.
func NewMiss(req *share.Request) *Miss {
	m := &Miss{req: req, hard: &req.Containers[0]}
	for i := range req.Containers {
		c := &req.Containers[i]
		switch {
		case c.Kind.Fractional() != m.hard.Kind.Fractional():
			if !c.Kind.Fractional() {
				m.hard = c
			}
		case c.Cards > m.hard.Cards, c.Cards == m.hard.Cards && c.Amount > m.hard.Amount:
			m.hard = c
		}
	}
	return m
}

// See takes in one node that the request does not fit.
func (m *Miss) See(n *Node) {
	if n.Closed != Open || !n.Sharing && m.hard.Kind.Fractional() {
		return
	}
	m.seen = true
	var open topology.Set
	for i := range n.Cards {
		card := &n.Cards[i]
		if !card.Usable() || !m.req.Allows(card.UUID) {
			continue
		}
		need := m.hard.PerCardMiB(card.TotalMiB, n.UnitMiB, n.SliceCount)
		switch m.hard.Kind {
		case share.Memory:
			m.units = max(m.units, share.Units(card.FreeMiB(), n.UnitMiB))
		case share.Slices:
			m.units = max(m.units, share.Units(card.FreeMiB(), share.SliceMiB(card.TotalMiB, n.SliceCount)))
		}
		if m.hard.Kind.Fractional() && card.FreeMiB() >= need || !m.hard.Kind.Fractional() && card.Free() {
			open = open.With(card.Minor)
		}
	}
	m.cards = max(m.cards, open.Len())
	m.group = max(m.group, n.Tree.Largest(open, within(m.req.Topology)))
	why := Fits(n, m.req)
	m.together = m.together || why == NoneTogether
	if why == NoCloseFree || why == NoCloseGroup {
		looser := *m.req
		looser.Topology = share.BestEffort
		m.looserFits = m.looserFits || Fits(n, &looser) == Fit
	}
}

// Text says what is missing by how much, and what would help; empty when no node was worth counting.
func (m *Miss) Text(names *contract.Names) string {
	c := m.hard
	asked := c.Amount / int64(max(c.Cards, 1))
	switch {
	case !m.seen:
		return ""
	case c.Kind.Fractional() && m.units < asked:
		return fmt.Sprintf("largest free share on a card is %s, %d asked", count(m.units, unitWord(c.Kind)), asked)
	case m.cards < c.Cards && c.Kind.Fractional():
		return fmt.Sprintf("most cards of a node with %s free is %d, %d asked", count(asked, unitWord(c.Kind)), m.cards, c.Cards)
	case m.cards < c.Cards:
		return fmt.Sprintf("most free cards on a node is %d, %d asked", m.cards, c.Cards)
	case m.group < c.Cards:
		wish := contract.TopologySameSwitch
		if m.req.Topology == share.SameNUMA {
			wish = contract.TopologySameNUMA
		}
		text := fmt.Sprintf("largest free %s group is %s, %d asked", wish, count(int64(m.group), "card"), c.Cards)
		if m.looserFits {
			text += fmt.Sprintf("; it would fit with %s=%s", names.TopologyKey, contract.TopologyBestEffort)
		}
		return text
	case m.together:
		return "each container fits a card alone; together they need more free cards on one node"
	}
	return ""
}

func unitWord(k share.Kind) string {
	if k == share.Slices {
		return "slice"
	}
	return "unit"
}

func count(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
