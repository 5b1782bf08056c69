package topology

// Query asks for the best subset of a machine's cards.
type Query struct {
	// From are the cards to choose from, Must those of them that have to be chosen.
	From, Must Set
	// Count is the number of cards to choose, the ones in Must included.
	Count int
	// Free are the wholly free cards. What a choice leaves behind is judged on Free minus the choice.
	Free Set
	// Penalty is an optional cost per card (by minor), summed over the choice and minimised after
	// closeness and before what is left behind. Amounts up to 2^50 do not overflow.
	Penalty *[MaxCards]int64
	// Within is a hard limit: all chosen cards are pairwise at this level or nearer. SameCard, the
	// zero value, and Across are no limit.
	Within Level
	// IgnoreDistance leaves closeness out of the objective. Within still holds.
	IgnoreDistance bool
}

// Choice is an answer to a Query.
type Choice struct {
	Cards Set
	// Closeness is 0 to 100, the average over pairs: 100 when all are on one switch, 0 when all are
	// across. Up to one card is 100. The scale is the same on all machines.
	Closeness int
	// Left is 0 to 100, the share of the residual value of Free that remains; 100 when no free card
	// was taken, or when Free was worth nothing.
	Left int
	// Intact is 0 to 100, the share of the residual value of Free that remains or went to the holder
	// as whole groups. 100 when nothing was broken: the last pair of a machine, taken whole, has Left
	// 0 and Intact 100, and one card out of it has Intact below 100.
	Intact int
}

// Best returns the best choice in the order given in the package comment, or false when there is none.
// A count of 0 has the empty choice.
func (t *Tree) Best(q Query) (Choice, bool) {
	within := limit(q.Within)
	q.From = q.From.Intersect(t.cards)
	if q.Count < q.Must.Len() || !q.From.Contains(q.Must) || q.From.Len() < q.Count || !t.Fits(q.From, q.Count, within) {
		return Choice{}, false
	}
	if q.Count == 0 {
		return t.choice(Set{}, q.Free), true
	}
	if q.From.Len() == q.Count {
		return t.choice(q.From, q.Free), true
	}
	var buffer [stackStates]state // questions about up to 16 cards stay on the stack
	arena := buffer[:]
	if n := statesFor(q.From, q.Free); n > len(arena) {
		arena = make([]state, n)
	}
	s := search{tree: t, query: q, within: within, arena: arena}
	cards, ok := s.run()
	if !ok {
		return Choice{}, false
	}
	return t.choice(cards, q.Free), true
}

// choice rates a set of cards.
func (t *Tree) choice(cards, free Set) Choice {
	c := Choice{Cards: cards, Closeness: t.Closeness(cards), Left: 100, Intact: 100}
	if before := t.residual(free); before > 0 {
		after := t.residual(free.Minus(cards))
		c.Left = int(100 * after / before)
		c.Intact = int(100 * (after + t.residual(free.Intersect(cards))) / before)
	}
	return c
}

// Closeness rates how close the cards are, as in Choice.
func (t *Tree) Closeness(cards Set) int {
	cards = cards.Intersect(t.cards)
	n := int64(cards.Len())
	if n < 2 {
		return 100
	}
	// A pair costs the sum of the steps of all places above it, so each place adds its step once per
	// pair below.
	var cost int64
	for i := range t.vertices {
		if v := &t.vertices[i]; v.step != 0 {
			k := int64(cards.Intersect(v.cards).Len())
			cost += v.step * (k * (k - 1) / 2)
		}
	}
	pairs := n * (n - 1) / 2
	return int(100 * (farthest*pairs - cost) / (farthest * pairs))
}
