package topology

import (
	"iter"
	"math/bits"
	"strconv"
)

// MaxCards is the number of minors a Set can hold: 0 to MaxCards-1.
const MaxCards = 128

// Set is a set of card minors, 0 to 127. The zero value is the empty set; sets compare with ==.
type Set [2]uint64

// SetOf returns the set of the given minors. Minors outside 0 to 127 are no cards and are left out.
func SetOf(minors ...int) Set {
	var s Set
	for _, m := range minors {
		s = s.With(m)
	}
	return s
}

// Has reports whether minor is in s.
func (s Set) Has(minor int) bool {
	return minor >= 0 && minor < MaxCards && s[minor>>6]&(1<<(minor&63)) != 0
}

// With returns s and minor.
func (s Set) With(minor int) Set {
	if minor >= 0 && minor < MaxCards {
		s[minor>>6] |= 1 << (minor & 63)
	}
	return s
}

// Without returns s less minor.
func (s Set) Without(minor int) Set {
	if minor >= 0 && minor < MaxCards {
		s[minor>>6] &^= 1 << (minor & 63)
	}
	return s
}

// Len returns the number of minors in s.
func (s Set) Len() int { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }

// Empty reports whether s has no minors.
func (s Set) Empty() bool { return s[0]|s[1] == 0 }

// Union returns the minors that are in s or in o.
func (s Set) Union(o Set) Set { return Set{s[0] | o[0], s[1] | o[1]} }

// Intersect returns the minors that are in s and in o.
func (s Set) Intersect(o Set) Set { return Set{s[0] & o[0], s[1] & o[1]} }

// Minus returns the minors that are in s and not in o.
func (s Set) Minus(o Set) Set { return Set{s[0] &^ o[0], s[1] &^ o[1]} }

// Contains reports whether every minor of o is in s.
func (s Set) Contains(o Set) bool { return o[0]&^s[0]|o[1]&^s[1] == 0 }

// Minors returns the minors in ascending order.
func (s Set) Minors() []int {
	minors := make([]int, 0, s.Len())
	for m := range s.All() {
		minors = append(minors, m)
	}
	return minors
}

// All yields the minors in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(i<<6 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// Less reports whether the sorted minors of s come before those of o, compared like words in a
// dictionary: {0,5} before {1,2}, {0} before {0,1}.
func (s Set) Less(o Set) bool {
	m := s.firstDifference(o)
	switch {
	case m < 0:
		return false
	case s.Has(m): // o has something larger in this place, or nothing: then o is a prefix of s
		return !o.above(m).Empty()
	default:
		return s.above(m).Empty()
	}
}

// firstDifference returns the lowest minor that is in exactly one of s and o, or -1. For two sets of
// one size the set that has it is the lower one; adding the same minors to both does not change that,
// which lets the tree search break ties below a vertex without knowing the rest.
func (s Set) firstDifference(o Set) int {
	if d := s[0] ^ o[0]; d != 0 {
		return bits.TrailingZeros64(d)
	}
	if d := s[1] ^ o[1]; d != 0 {
		return 64 + bits.TrailingZeros64(d)
	}
	return -1
}

// above returns the minors of s that are larger than minor.
func (s Set) above(minor int) Set {
	if minor >= 64 {
		return Set{0, s[1] &^ (1<<(minor-63) - 1)}
	}
	return Set{s[0] &^ (1<<(minor+1) - 1), s[1]}
}

// String returns the minors as "{0,1}".
func (s Set) String() string {
	b := []byte{'{'}
	for m := range s.All() {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(m), 10)
	}
	return string(append(b, '}'))
}
