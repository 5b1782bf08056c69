package topology

import "fmt"

// Level is how close two cards are, the nearest first.
type Level int

const (
	// SameCard is a card and itself.
	SameCard Level = iota
	// SameSwitch is two cards below one PCI bridge: they reach each other without the processor.
	SameSwitch
	// SameRootComplex is two cards below one root complex that share no bridge.
	SameRootComplex
	// SameNUMA is two cards of different root complexes on one NUMA node.
	SameNUMA
	// Across is everything else, also wherever the host does not tell.
	Across
)

// String returns the level in words, for example "same switch".
func (l Level) String() string {
	switch l {
	case SameCard:
		return "same card"
	case SameSwitch:
		return "same switch"
	case SameRootComplex:
		return "same root complex"
	case SameNUMA:
		return "same NUMA node"
	case Across:
		return "across"
	}
	return fmt.Sprintf("level %d", int(l))
}

// farthest is levelCost(Across), the scale on which closeness is measured.
const farthest = 10

// levelCost is what a pair on a level costs. Leaving the switch sends traffic between cards through the
// processor, and leaving the NUMA node sends it over the link between sockets: two large steps of about
// one size. Changing the root complex within a socket is one more hop on the same die: a small one.
func levelCost(l Level) int64 {
	switch l {
	case SameCard, SameSwitch:
		return 0
	case SameRootComplex:
		return 4
	case SameNUMA:
		return 5
	}
	return farthest
}

// maxBridges is the longest chain of bridges below a root complex. Real chains have at most ten.
const maxBridges = 64

// distanceScale separates the level part of a distance from the bridge part. 128 cards make 8,128
// pairs of at most 64 each, 520,192 in sum, so no sum of bridge parts reaches one step of a level.
const distanceScale = 1 << 20

// distance returns the distance of two cards that meet on a level; bridges is the number of bridges
// that both have in common, for SameSwitch.
func distance(l Level, bridges int) int64 {
	if l == SameSwitch {
		return int64(maxBridges + 1 - bridges)
	}
	return levelCost(l) * distanceScale
}
