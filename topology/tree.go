package topology

import (
	"fmt"
	"slices"
)

// Card is one card and its place in the machine.
type Card struct {
	Minor int
	// Bridges are the PCI bridges above the card, nearest first; the last entry is the root complex
	// ("pci0000:0c"). Empty where the host does not tell.
	Bridges []string
	// NUMA is the card's NUMA node, -1 (or any negative number) when unknown.
	NUMA int
}

// Tree is the hierarchy of one machine's cards. It is immutable.
type Tree struct {
	cards    Set
	vertices []vertex // children before parents; the last one is the root
	// groups[l] are the largest sets of at least two cards that are pairwise at level l or nearer.
	groups [Across + 1][]Set
}

// vertex is a card, or a place where at least two branches with cards meet. Places with one branch
// only are not in the tree: no pair of cards meets there.
type vertex struct {
	cards    Set
	minor    int // of a card, else -1
	level    Level
	bridges  int     // bridges in common to all cards below
	children []int32 // empty for a card
	distance int64   // of two cards that meet here
	step     int64   // levelCost here minus levelCost at the parent; for the root levelCost
	weight   int64   // of the cards left free here, see residual.go
}

// New builds the tree of a machine. The order of the cards does not matter.
func New(cards []Card) (*Tree, error) {
	t := &Tree{}
	for _, c := range cards {
		switch {
		case c.Minor < 0 || c.Minor >= MaxCards:
			return nil, fmt.Errorf("card %d: want a minor of 0 to %d", c.Minor, MaxCards-1)
		case t.cards.Has(c.Minor):
			return nil, fmt.Errorf("card %d: listed twice", c.Minor)
		case len(c.Bridges) > maxBridges+1:
			return nil, fmt.Errorf("card %d: %d bridges in a chain, want at most %d", c.Minor, len(c.Bridges), maxBridges+1)
		case slices.Contains(c.Bridges, ""):
			return nil, fmt.Errorf("card %d: a bridge without a name", c.Minor)
		}
		t.cards = t.cards.With(c.Minor)
	}
	sorted := slices.Clone(cards)
	slices.SortFunc(sorted, func(a, b Card) int { return a.Minor - b.Minor })

	var machine []int32
	for _, node := range numaGroups(sorted) {
		var complexes []int32
		for _, rc := range node {
			complexes = append(complexes, t.addBelow(rc, 0))
		}
		machine = append(machine, t.join(SameNUMA, 0, complexes))
	}
	if len(machine) > 0 {
		t.join(Across, 0, machine)
	}
	t.weigh()
	t.group()
	return t, nil
}

// Cards returns the minors of all cards.
func (t *Tree) Cards() Set { return t.cards }

// numaGroups returns the root complexes of each NUMA node, and each root complex without a (single)
// node as a group of its own; a card without bridges counts as a root complex. All is in the order of
// the lowest minor, given cards in that order.
func numaGroups(cards []Card) [][][]Card {
	var complexes [][]Card
	byName := map[string]int{}
	for _, c := range cards {
		if len(c.Bridges) == 0 {
			complexes = append(complexes, []Card{c})
			continue
		}
		name := c.Bridges[len(c.Bridges)-1]
		i, known := byName[name]
		if !known {
			i = len(complexes)
			byName[name] = i
			complexes = append(complexes, nil)
		}
		complexes[i] = append(complexes[i], c)
	}
	var groups [][][]Card
	byNode := map[int]int{}
	for _, rc := range complexes {
		node := rc[0].NUMA
		if slices.ContainsFunc(rc, func(c Card) bool { return c.NUMA != node }) {
			node = -1
		}
		i, known := byNode[node]
		if !known || node < 0 {
			i = len(groups)
			groups = append(groups, nil)
			if node >= 0 {
				byNode[node] = i
			}
		}
		groups[i] = append(groups[i], rc)
	}
	return groups
}

// addBelow adds the tree of cards that share the first shared entries of their chains, counted from
// the root complex, and returns its root.
func (t *Tree) addBelow(cards []Card, shared int) int32 {
	if len(cards) == 1 {
		t.vertices = append(t.vertices, vertex{minor: cards[0].Minor, cards: SetOf(cards[0].Minor), level: SameCard})
		return int32(len(t.vertices) - 1)
	}
	var children []int32
	byName := map[string]int{}
	var branches [][]Card
	for _, c := range cards {
		if len(c.Bridges) == shared {
			branches = append(branches, []Card{c})
			continue
		}
		name := c.Bridges[len(c.Bridges)-1-shared]
		i, known := byName[name]
		if !known {
			i = len(branches)
			byName[name] = i
			branches = append(branches, nil)
		}
		branches[i] = append(branches[i], c)
	}
	for _, branch := range branches {
		children = append(children, t.addBelow(branch, shared+1))
	}
	if shared <= 1 { // the only entry in common is the root complex
		return t.join(SameRootComplex, 0, children)
	}
	return t.join(SameSwitch, shared-1, children)
}

// join adds the place where the children meet; a single child needs none.
func (t *Tree) join(l Level, bridges int, children []int32) int32 {
	if len(children) == 1 {
		return children[0]
	}
	v := vertex{minor: -1, level: l, bridges: bridges, children: children, distance: distance(l, bridges)}
	for _, c := range children {
		child := &t.vertices[c]
		v.cards = v.cards.Union(child.cards)
		child.step = levelCost(child.level) - levelCost(l)
	}
	v.step = levelCost(l)
	t.vertices = append(t.vertices, v)
	return int32(len(t.vertices) - 1)
}

// group fills groups from the vertices: the topmost ones whose level is within each limit.
func (t *Tree) group() {
	for limit := SameSwitch; limit <= Across; limit++ {
		var covered Set
		for i := len(t.vertices) - 1; i >= 0; i-- { // parents first
			v := &t.vertices[i]
			if v.minor < 0 && v.level <= limit && v.cards.Intersect(covered).Empty() {
				t.groups[limit] = append(t.groups[limit], v.cards)
				covered = covered.Union(v.cards)
			}
		}
		slices.SortFunc(t.groups[limit], func(a, b Set) int {
			if a.Less(b) {
				return -1
			}
			return 1
		})
	}
}

// Level returns how close two cards are. A minor that is not in the tree is Across from everything.
func (t *Tree) Level(a, b int) Level {
	if v := t.meet(a, b); v != nil {
		return v.level
	}
	return Across
}

// Distance returns how far two cards are from each other: 0 for a card and itself, more for each Level,
// and within SameSwitch less the more bridges two cards have in common. Best minimises its sum over
// pairs. Distances of different machines are on one scale.
func (t *Tree) Distance(a, b int) int {
	if v := t.meet(a, b); v != nil {
		return int(v.distance)
	}
	return int(distance(Across, 0))
}

// meet returns the lowest vertex above both cards, or nil when one is not in the tree.
func (t *Tree) meet(a, b int) *vertex {
	if !t.cards.Has(a) || !t.cards.Has(b) {
		return nil
	}
	both := SetOf(a, b)
	for i := range t.vertices { // children come before parents
		if v := &t.vertices[i]; v.cards.Contains(both) {
			return v
		}
	}
	return nil
}
