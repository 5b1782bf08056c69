package topology

// limit returns the level a hard limit stands for: the zero value and anything unknown are no limit.
func limit(within Level) Level {
	if within < SameSwitch || within > Across {
		return Across
	}
	return within
}

// Fits reports whether from holds count cards that are pairwise at level within or nearer. SameCard,
// the zero value, and Across are no limit. It does not allocate and is meant for every node of a
// cluster in a scheduler's filter.
func (t *Tree) Fits(from Set, count int, within Level) bool {
	from = from.Intersect(t.cards)
	switch {
	case count <= 0:
		return true
	case count == 1:
		return !from.Empty()
	}
	for _, g := range t.groups[limit(within)] {
		if from.Intersect(g).Len() >= count {
			return true
		}
	}
	return false
}

// Largest returns the size of the largest subset of from whose cards are pairwise at level within or
// nearer. SameCard, the zero value, and Across are no limit.
func (t *Tree) Largest(from Set, within Level) int {
	from = from.Intersect(t.cards)
	if from.Empty() {
		return 0
	}
	largest := 1
	for _, g := range t.groups[limit(within)] {
		largest = max(largest, from.Intersect(g).Len())
	}
	return largest
}
