package topology_test

import (
	"slices"

	"github.com/topscloud/topscloud/topology"
)

// oracle answers the questions of a Tree from the definitions alone: it knows pairs of cards and
// subsets, and no tree. Places are found as balls around cards, the best choice by trying all subsets.
type oracle struct {
	cards  []topology.Card
	node   map[int]int // NUMA node of a card as far as its whole root complex agrees
	places []place
}

type place struct {
	cards  topology.Set
	level  topology.Level
	weight int64
}

func newOracle(cards []topology.Card) *oracle {
	o := &oracle{cards: cards, node: map[int]int{}}
	for _, a := range cards {
		o.node[a.Minor] = a.NUMA
		for _, b := range cards {
			if root(a) != "" && root(a) == root(b) && a.NUMA != b.NUMA {
				o.node[a.Minor] = -1
			}
		}
	}
	seen := map[topology.Set]bool{}
	for _, a := range cards {
		for _, far := range cards {
			var ball topology.Set
			level := topology.SameCard
			for _, x := range cards {
				if o.distance(a, x) <= o.distance(a, far) {
					ball = ball.With(x.Minor)
					level = max(level, o.level(a, x))
				}
			}
			if ball.Len() > 1 && !seen[ball] {
				seen[ball] = true
				o.places = append(o.places, place{cards: ball, level: level})
			}
		}
	}
	// Small places first, so that the height of what is inside is known.
	slices.SortFunc(o.places, func(a, b place) int { return a.cards.Len() - b.cards.Len() })
	height := make([]int, len(o.places))
	top := 0
	for i, p := range o.places {
		height[i] = 1
		for j, inner := range o.places[:i] {
			if p.cards.Contains(inner.cards) {
				height[i] = max(height[i], height[j]+1)
			}
		}
		if p.level == topology.SameSwitch {
			top = max(top, height[i])
		}
	}
	for i := range o.places {
		p := &o.places[i]
		rank := map[topology.Level]int{topology.Across: 0, topology.SameNUMA: 1, topology.SameRootComplex: 2, topology.SameSwitch: 3 + top - height[i]}[p.level]
		p.weight = 1
		for range rank {
			p.weight *= 8
		}
	}
	return o
}

func root(c topology.Card) string {
	if len(c.Bridges) == 0 {
		return ""
	}
	return c.Bridges[len(c.Bridges)-1]
}

// shared is the number of entries two chains have in common, counted from the root complex.
func shared(a, b topology.Card) int {
	n := 0
	for n < len(a.Bridges) && n < len(b.Bridges) && a.Bridges[len(a.Bridges)-1-n] == b.Bridges[len(b.Bridges)-1-n] {
		n++
	}
	return n
}

func (o *oracle) level(a, b topology.Card) topology.Level {
	switch {
	case a.Minor == b.Minor:
		return topology.SameCard
	case shared(a, b) > 1:
		return topology.SameSwitch
	case shared(a, b) == 1:
		return topology.SameRootComplex
	case o.node[a.Minor] >= 0 && o.node[a.Minor] == o.node[b.Minor]:
		return topology.SameNUMA
	}
	return topology.Across
}

func (o *oracle) distance(a, b topology.Card) int64 {
	switch o.level(a, b) {
	case topology.SameCard:
		return 0
	case topology.SameSwitch:
		return int64(66 - shared(a, b))
	case topology.SameRootComplex:
		return 4 << 20
	case topology.SameNUMA:
		return 5 << 20
	}
	return 10 << 20
}

func (o *oracle) residual(free topology.Set) int64 {
	var sum int64
	for _, c := range o.cards {
		if free.Has(c.Minor) {
			sum++
		}
	}
	for _, p := range o.places {
		n := free.Intersect(p.cards).Len()
		for _, q := range []int{2, 4, 8} {
			sum += p.weight * int64(q*(n/q))
		}
	}
	return sum
}

// best tries every subset of From.
func (o *oracle) best(q topology.Query) (topology.Set, bool) {
	var cards []topology.Card
	for _, c := range o.cards {
		if q.From.Has(c.Minor) {
			cards = append(cards, c)
		}
	}
	type value struct {
		distance, penalty, residual int64
		cards                       topology.Set
	}
	var best value
	found := false
	for mask := range 1 << len(cards) {
		var v value
		n, ok := 0, true
		for i, a := range cards {
			if mask>>i&1 == 0 {
				continue
			}
			n++
			v.cards = v.cards.With(a.Minor)
			if q.Penalty != nil {
				v.penalty += q.Penalty[a.Minor]
			}
			for j, b := range cards[:i] {
				if mask>>j&1 == 0 {
					continue
				}
				ok = ok && (q.Within == topology.SameCard || o.level(a, b) <= q.Within)
				if !q.IgnoreDistance {
					v.distance += o.distance(a, b)
				}
			}
		}
		if !ok || n != q.Count || !v.cards.Contains(q.Must) {
			continue
		}
		v.residual = o.residual(q.Free.Minus(v.cards))
		better := !found
		switch {
		case !found:
		case v.distance != best.distance:
			better = v.distance < best.distance
		case v.penalty != best.penalty:
			better = v.penalty < best.penalty
		case v.residual != best.residual:
			better = v.residual > best.residual
		default:
			better = slices.Compare(v.cards.Minors(), best.cards.Minors()) < 0
		}
		if better {
			best, found = v, true
		}
	}
	return best.cards, found
}
