package topology_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/topscloud/topscloud/topology"
)

// vendorTree is the eight-card machine of the vendor's example: per half one switch whose first port
// leads to a second switch with a pair of cards, and whose other ports lead to one card each.
func vendorTree() []topology.Card {
	half := func(minor int, root string, bus func(int) string, numa int) []topology.Card {
		up := []string{bus(0x0d) + ":00.0", bus(0x0c) + ":02.0", root}
		below := func(names ...string) []string { return append(names, up...) }
		return []topology.Card{
			{Minor: minor, NUMA: numa, Bridges: below(bus(0x10)+":00.0", bus(0x0f)+":00.0", bus(0x0e)+":00.0")},
			{Minor: minor + 1, NUMA: numa, Bridges: below(bus(0x10)+":04.0", bus(0x0f)+":00.0", bus(0x0e)+":00.0")},
			{Minor: minor + 2, NUMA: numa, Bridges: below(bus(0x14)+":00.0", bus(0x13)+":00.0", bus(0x0e)+":04.0")},
			{Minor: minor + 3, NUMA: numa, Bridges: below(bus(0x18)+":00.0", bus(0x17)+":00.0", bus(0x0e)+":08.0")},
		}
	}
	first := half(0, "pci0000:0c", func(b int) string { return fmt.Sprintf("0000:%02x", b) }, 0)
	return append(first, half(4, "pci0000:97", func(b int) string { return fmt.Sprintf("0000:%02x", b+0x8b) }, 1)...)
}

// twoSwitches is a machine with two switches of four cards, one per socket.
func twoSwitches() []topology.Card {
	var cards []topology.Card
	for m := range 8 {
		root, up := "pci0000:10", "0000:11:00.0"
		if m >= 4 {
			root, up = "pci0000:90", "0000:91:00.0"
		}
		cards = append(cards, topology.Card{Minor: m, NUMA: m / 4, Bridges: []string{fmt.Sprintf("port%d", m), up, root}})
	}
	return cards
}

// fourByFour is a machine of sixteen cards: four switches of two pairs each, two per socket.
func fourByFour() []topology.Card {
	var cards []topology.Card
	for m := range 16 {
		cards = append(cards, topology.Card{Minor: m, NUMA: m / 8, Bridges: []string{
			fmt.Sprintf("port%d", m), fmt.Sprintf("inner%d", m/2), fmt.Sprintf("switch%d", m/4), fmt.Sprintf("root%d", m/4),
		}})
	}
	return cards
}

// randomCards draws a machine of n cards with minors below 128: switches nested up to four deep, cards
// at every height, unknown and contradicting NUMA nodes, cards without bridges.
func randomCards(r *rand.Rand, n int) []topology.Card {
	var cards []topology.Card
	minors := r.Perm(32)
	if r.IntN(4) == 0 {
		minors = r.Perm(topology.MaxCards)
	}
	roots, width := 1+r.IntN(4), 1+r.IntN(3)
	claims := r.IntN(3) // 0: clean nodes, 1: all unknown, 2: anything
	for i := range n {
		c := topology.Card{Minor: minors[i], NUMA: -1}
		root := r.IntN(roots)
		switch claims {
		case 0:
			c.NUMA = root / 2
		case 2:
			c.NUMA = r.IntN(4) - 1
		}
		if r.IntN(12) > 0 {
			c.Bridges = []string{fmt.Sprintf("root%d", root)}
			for d := r.IntN(5); d > 0; d-- {
				c.Bridges = append([]string{fmt.Sprintf("b%d", r.IntN(width))}, c.Bridges...)
			}
		}
		cards = append(cards, c)
	}
	return cards
}

func mustTree(t testing.TB, cards []topology.Card) *topology.Tree {
	t.Helper()
	tree, err := topology.New(cards)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func span(from, to int) topology.Set {
	var s topology.Set
	for m := from; m <= to; m++ {
		s = s.With(m)
	}
	return s
}
