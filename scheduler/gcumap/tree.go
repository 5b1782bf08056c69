package gcumap

import (
	"strconv"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// groups writes down a node's tree: which cards meet where comes from the tree alone, the names of the
// places from what the node announced.
func groups(tree *topology.Tree, devices map[int]contract.NodeDevice) []Group {
	var out []Group
	for _, cards := range split(tree.Cards().Minors(), near(tree, topology.SameNUMA)) {
		g := Group{Kind: NUMA, Name: numaName(cards, devices)}
		for _, below := range split(cards, near(tree, topology.SameRootComplex)) {
			g.add(below, func() Group { return rootComplex(tree, below, devices) })
		}
		out = append(out, g)
	}
	return out
}

// add puts a single card directly into the group, and more of them as a group of their own.
func (g *Group) add(cards []int, group func() Group) {
	if len(cards) == 1 {
		g.Minors = append(g.Minors, cards[0])
		return
	}
	g.Groups = append(g.Groups, group())
}

func rootComplex(tree *topology.Tree, cards []int, devices map[int]contract.NodeDevice) Group {
	g := Group{Kind: RootComplex}
	if b := common(cards, devices); len(b) > 0 {
		g.Name = b[len(b)-1]
	}
	for _, below := range split(cards, near(tree, topology.SameSwitch)) {
		g.add(below, func() Group { return switchOf(tree, below, devices) })
	}
	return g
}

func switchOf(tree *topology.Tree, cards []int, devices map[int]contract.NodeDevice) Group {
	g := Group{Kind: Switch}
	if b := common(cards, devices); len(b) > 0 {
		g.Name = b[0]
	}
	span := 0
	for _, a := range cards {
		for _, b := range cards {
			span = max(span, tree.Distance(a, b))
		}
	}
	for _, below := range split(cards, func(a, b int) bool { return tree.Distance(a, b) < span }) {
		g.add(below, func() Group { return switchOf(tree, below, devices) })
	}
	return g
}

func near(tree *topology.Tree, l topology.Level) func(a, b int) bool {
	return func(a, b int) bool { return tree.Level(a, b) <= l }
}

// split parts cards into those that are together, in the order of the lowest minor. Closeness in a
// tree is transitive, so one card of a part speaks for it.
func split(cards []int, together func(a, b int) bool) [][]int {
	var parts [][]int
next:
	for _, c := range cards {
		for i := range parts {
			if together(parts[i][0], c) {
				parts[i] = append(parts[i], c)
				continue next
			}
		}
		parts = append(parts, []int{c})
	}
	return parts
}

// common returns the bridges above all of the cards, nearest first.
func common(cards []int, devices map[int]contract.NodeDevice) []string {
	shared := devices[cards[0]].Bridges
	for _, c := range cards[1:] {
		b := devices[c].Bridges
		n := 0
		for n < len(b) && n < len(shared) && b[len(b)-1-n] == shared[len(shared)-1-n] {
			n++
		}
		shared = shared[len(shared)-n:]
	}
	return shared
}

func numaName(cards []int, devices map[int]contract.NodeDevice) string {
	numa := devices[cards[0]].NUMA
	for _, c := range cards {
		if devices[c].NUMA != numa {
			return ""
		}
	}
	if numa < 0 {
		return ""
	}
	return strconv.Itoa(numa)
}
