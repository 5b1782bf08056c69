package plugin

import (
	"fmt"

	"github.com/topscloud/topscloud/topology"
)

// Request is kubelet's question which cards it should give to a container. Cards are named by minor.
type Request struct {
	// Available are the cards to choose from, MustInclude those of them that have to be chosen.
	Available, MustInclude []int
	// Size is the number of cards to choose, those that must be included counted in.
	Size int
	// Waiting are the recorded cards of each container whose record is bound to this node and that has
	// not got them yet. An entry that cannot be is passed over.
	Waiting [][]int
}

// Prefer returns the cards to give, sorted. tree may be nil where the host's wiring is not known.
func Prefer(tree *topology.Tree, r Request) ([]int, error) {
	available, err := setOf(r.Available)
	if err != nil {
		return nil, fmt.Errorf("available cards: %w", err)
	}
	must, err := setOf(r.MustInclude)
	if err != nil {
		return nil, fmt.Errorf("cards that must be included: %w", err)
	}
	switch {
	case r.Size < 0:
		return nil, fmt.Errorf("%d cards asked for", r.Size)
	case r.Size > available.Len():
		return nil, fmt.Errorf("%d cards asked for, %d available: %v", r.Size, available.Len(), available)
	case !available.Contains(must):
		return nil, fmt.Errorf("cards %v must be included and are not available", must.Minus(available))
	case must.Len() > r.Size:
		return nil, fmt.Errorf("%d cards asked for, and the %d of %v must be included", r.Size, must.Len(), must)
	}
	if cards, one := awaited(r.Waiting, available, must, r.Size); one {
		return cards.Minors(), nil
	}
	return best(tree, available, must, r.Size).Minors(), nil
}

// awaited returns the cards of the one record that fits the question. Two containers that wait for the
// same cards are one answer.
func awaited(waiting [][]int, available, must topology.Set, size int) (cards topology.Set, one bool) {
	for _, entry := range waiting {
		s, err := setOf(entry)
		if err != nil || s.Len() != size || !available.Contains(s) || !s.Contains(must) {
			continue
		}
		if one && s != cards {
			return topology.Set{}, false
		}
		cards, one = s, true
	}
	return cards, one && size > 0
}

// best returns topology's best subset. Cards that the tree does not know fill up what it cannot give.
func best(tree *topology.Tree, available, must topology.Set, size int) topology.Set {
	var known topology.Set
	if tree != nil {
		known = tree.Cards().Intersect(available)
	}
	strange := must.Minus(known)
	count := min(size-strange.Len(), known.Len())
	cards := strange
	if count > 0 {
		choice, ok := tree.Best(topology.Query{From: known, Must: must.Intersect(known), Count: count, Free: available})
		if ok { // there is always one: count is between the numbers of must and known
			cards = cards.Union(choice.Cards)
		}
	}
	for minor := range available.All() {
		if cards.Len() == size {
			break
		}
		cards = cards.With(minor)
	}
	return cards
}

func setOf(minors []int) (topology.Set, error) {
	var s topology.Set
	for _, m := range minors {
		switch {
		case m < 0 || m >= topology.MaxCards:
			return s, fmt.Errorf("card %d: want 0 to %d", m, topology.MaxCards-1)
		case s.Has(m):
			return s, fmt.Errorf("card %d stands twice", m)
		}
		s = s.With(m)
	}
	return s, nil
}
