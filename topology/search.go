package topology

import "math"

// search finds the best subset by dynamic programming over the tree. For each vertex it keeps, per
// number of chosen cards below it, the best choice of that many. Choices of different branches do not
// influence each other except through their sizes: the pairs between two branches all have the
// distance of the vertex where the branches meet, and what is left free at a vertex depends on how
// many free cards were chosen below. Cards outside Query.Free leave nothing behind, so choices are
// counted apart for cards in Free and others; where From lies within Free that is one dimension.
type search struct {
	tree   *Tree
	query  Query
	within Level
	// arena holds the states of the vertices in progress, as a stack.
	arena []state
}

// stackStates is statesFor of any 16 cards: 2*(8+1)*(8+1)+16 at most.
const stackStates = 178

// statesFor bounds the states the arena holds at a time: those of disjoint branches in progress, which
// are together at most (f+1)*(u+1) plus one per branch for f cards in Free and u others, and one merge
// result of at most (f+1)*(u+1).
func statesFor(from, free Set) int {
	f := from.Intersect(free).Len()
	u := from.Len() - f
	return 2*(f+1)*(u+1) + f + u
}

// state is the best choice of a certain size below a vertex.
type state struct {
	distance int64 // noChoice when there is none
	penalty  int64
	residual int64 // relative to taking nothing; only differences matter
	cards    Set
}

const noChoice = math.MaxInt64

// shape says how many cards below a vertex can be chosen: from Free, and from the others. Its states
// lie in the arena in rows of equal numbers from Free.
type shape struct{ free, used int }

func (p shape) states() int { return (p.free + 1) * (p.used + 1) }

func (p shape) at(free, used int) int { return free*(p.used+1) + used }

// losesTo reports whether a choice of these values, of equally many cards, goes before s.
func (s *state) losesTo(distance, penalty, residual int64, cards Set) bool {
	if distance != s.distance {
		return distance < s.distance
	}
	if penalty != s.penalty {
		return penalty < s.penalty
	}
	if residual != s.residual {
		return residual > s.residual
	}
	return cards.Has(cards.firstDifference(s.cards))
}

// run returns the best choice over the whole tree.
func (s *search) run() (Set, bool) {
	p := s.solve(int32(len(s.tree.vertices)-1), 0)
	best := state{distance: noChoice}
	for free := 0; free <= min(p.free, s.query.Count); free++ {
		used := s.query.Count - free
		if used > p.used {
			continue
		}
		if x := &s.arena[p.at(free, used)]; x.distance != noChoice && best.losesTo(x.distance, x.penalty, x.residual, x.cards) {
			best = *x
		}
	}
	return best.cards, best.distance != noChoice
}

// solve puts the states of vertex i into the arena at offset at. The vertex has cards in From below it.
func (s *search) solve(i int32, at int) shape {
	v := &s.tree.vertices[i]
	if v.minor >= 0 {
		return s.leaf(v, at)
	}
	var p shape
	started := false
	for _, c := range v.children {
		if s.tree.vertices[c].cards.Intersect(s.query.From).Empty() {
			continue
		}
		if !started {
			started = true
			p = s.solve(c, at)
			continue
		}
		next := at + p.states()
		cp := s.solve(c, next)
		merged := next + cp.states()
		mp := s.merge(v, p, at, cp, next, merged)
		copy(s.arena[at:at+mp.states()], s.arena[merged:merged+mp.states()])
		p = mp
	}
	free := s.query.Free.Intersect(v.cards).Len()
	for taken := 0; taken <= p.free; taken++ {
		value := v.weight * groupValue(free-taken)
		row := at + p.at(taken, 0)
		for j := range s.arena[row : row+p.used+1] {
			s.arena[row+j].residual += value
		}
	}
	return p
}

// leaf puts the two states of a card into the arena: left alone, unless it must be chosen, and chosen.
func (s *search) leaf(v *vertex, at int) shape {
	s.arena[at] = state{}
	if s.query.Must.Has(v.minor) {
		s.arena[at].distance = noChoice
	}
	chosen := state{cards: v.cards}
	if s.query.Penalty != nil {
		chosen.penalty = s.query.Penalty[v.minor]
	}
	p := shape{used: 1}
	if s.query.Free.Has(v.minor) {
		p = shape{free: 1}
		chosen.residual = -1 // a free single card is worth 1
	}
	s.arena[at+1] = chosen
	return p
}

// merge joins two branches a and b that meet at v into the states at offset out.
func (s *search) merge(v *vertex, a shape, aAt int, b shape, bAt int, out int) shape {
	count := s.query.Count
	p := shape{free: min(a.free+b.free, count), used: min(a.used+b.used, count)}
	result := s.arena[out : out+p.states()]
	for i := range result {
		result[i].distance = noChoice
	}
	meeting := v.distance
	if s.query.IgnoreDistance {
		meeting = 0
	}
	oneSide := v.level > s.within // cards of both branches would break the hard limit
	for af := 0; af <= a.free; af++ {
		for au := 0; au <= a.used && af+au <= count; au++ {
			x := &s.arena[aAt+a.at(af, au)]
			if x.distance == noChoice {
				continue
			}
			na := af + au
			for bf := 0; bf <= b.free && na+bf <= count; bf++ {
				for bu := 0; bu <= b.used && na+bf+bu <= count; bu++ {
					nb := bf + bu
					y := &s.arena[bAt+b.at(bf, bu)]
					if y.distance == noChoice || oneSide && na > 0 && nb > 0 {
						continue
					}
					distance := x.distance + y.distance + meeting*int64(na*nb)
					penalty := x.penalty + y.penalty
					residual := x.residual + y.residual
					cards := x.cards.Union(y.cards)
					if r := &result[p.at(af+bf, au+bu)]; r.losesTo(distance, penalty, residual, cards) {
						*r = state{distance, penalty, residual, cards}
					}
				}
			}
		}
	}
	return p
}
