package topology

// Value says how much a set of free cards can serve, on a scale that compares between hosts: one per
// card, and per place where cards meet q for each group of q = 2, 4 or 8 cards below it. It is the
// residual value that Best minimises the loss of, with all places weighed alike. It allocates nothing.
func (t *Tree) Value(free Set) int64 {
	sum := int64(free.Intersect(t.cards).Len())
	for i := range t.vertices {
		if v := &t.vertices[i]; v.weight != 0 {
			sum += groupValue(free.Intersect(v.cards).Len())
		}
	}
	return sum
}
