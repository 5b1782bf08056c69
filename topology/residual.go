package topology

// The residual value of a set of free cards says how much it can still serve. Pods ask for 1, 2, 4 or
// 8 cards that are close to each other, so
//
//	value(free) = |free| + sum over places v of weight(v) * sum over q in {2,4,8} of q*floor(free(v)/q)
//
// where a place is a bridge, a root complex, a NUMA node or the machine, if at least two branches with
// cards meet there, and free(v) is the number of free cards below it. A group of q is worth q: each
// card of a whole eight counts as part of a pair, of a four and of an eight. A single card is worth 1
// wherever it is, so it is counted once and not per place; this is what makes a share prefer a card
// that is in use already to one that is wholly free.
//
// Weights. Losing one card at a place costs at least 2 there if it breaks a pair, and at most 2+4+8 =
// 14. Places get a rank: machine 0, NUMA node 1, root complex 2, and bridges from 3 upwards, the
// innermost highest. With weight = 8^rank, everything that the loss of a card can cost at all places
// of lower rank is at most 1 + 14*(8^rank - 1)/7 = 2*8^rank - 1, less than the 2*8^rank of one pair
// broken at this rank. From that follows, for one card taken:
//
//   - a card whose partners are busy goes before a card of a whole pair, whatever is above them;
//   - breaking a tight pair costs more than breaking a loose one, whatever is above them.
//
// For two cards of equally near pairs the pair itself costs the same everywhere, so the next rank
// decides, where a broken four loses less than a whole one.

// maxBridgeRanks bounds the ranks of nested bridges so that values fit in 64 bits: 8^10 * 3*128 cards
// * 128 places is below 2^46. Bridges nested deeper share the lowest bridge rank.
const maxBridgeRanks = 8

// weigh sets the weight of each place.
func (t *Tree) weigh() {
	// Height among bridges: 1 for a bridge above cards only, so that the innermost bridges of two
	// switches have one rank even if one of the switches is nested deeper.
	height := make([]int, len(t.vertices))
	top := 0
	for i := range t.vertices {
		for _, c := range t.vertices[i].children {
			height[i] = max(height[i], height[c]+1)
		}
		if t.vertices[i].level == SameSwitch {
			top = min(max(top, height[i]), maxBridgeRanks)
		}
	}
	for i := range t.vertices {
		v := &t.vertices[i]
		rank := 0
		switch v.level {
		case SameNUMA:
			rank = 1
		case SameRootComplex:
			rank = 2
		case SameSwitch:
			rank = 3 + max(top-height[i], 0)
		}
		if v.minor < 0 {
			v.weight = 1 << (3 * rank)
		}
	}
}

// groupValue is the sum over q in {2,4,8} of q*floor(free/q): free with its low bits cleared.
func groupValue(free int) int64 { return int64(free&^1 + free&^3 + free&^7) }

// residual returns the value of the free cards.
func (t *Tree) residual(free Set) int64 {
	sum := int64(free.Intersect(t.cards).Len())
	for i := range t.vertices {
		if v := &t.vertices[i]; v.weight != 0 {
			sum += v.weight * groupValue(free.Intersect(v.cards).Len())
		}
	}
	return sum
}
