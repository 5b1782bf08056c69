package health

import "slices"

// Kind says what a Change is about.
type Kind uint8

// The kinds of changes.
const (
	// Appeared: a card that was not known. If something is wrong with it, another change says so.
	Appeared Kind = iota + 1
	// Gone: the card is not in the host any more.
	Gone
	// Replaced: another card is in its place.
	Replaced
	// BecameFaulty: a fault is proven.
	BecameFaulty
	// BecameUnknown: nothing is proven (any more), and the card cannot be given to new holders.
	BecameUnknown
	// OnProbation: all findings of a card that was faulty are gone.
	OnProbation
	// Recovered: the card may be given to new holders again.
	Recovered
	// OtherCauses: what is wrong changed, and the card is as faulty or unknown as before.
	OtherCauses
	// Warned: a warning that was not there before.
	Warned
)

var kindNames = [...]string{"none", "appeared", "gone", "replaced", "became faulty", "became unknown", "on probation",
	"recovered", "other causes", "warned"}

// String returns the kind in words.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "none"
}

// Change is what an Update made of one card. One Update may make several changes of a card.
type Change struct {
	Kind Kind
	// Card is the card after the Update, Before the card before it: the zero Card where it appeared.
	Card, Before Card
}

// standing is a card as new holders see it.
type standing uint8

const (
	unseen standing = iota
	well
	waiting // on probation
	doubted
	faulty
)

// standingOf does not look at Present: a card that was well when the agent stopped and is well when it
// starts did not change.
func standingOf(c *Card, known bool) standing {
	switch {
	case !known:
		return unseen
	case c.Faulty:
		return faulty
	case len(c.Findings) > 0:
		return doubted
	case !c.ProbationUntil.IsZero():
		return waiting
	}
	return well
}

// changes compares a card with what it was.
func changes(before, after *Card, known, replaced bool) []Kind {
	var kinds []Kind
	was, is := standingOf(before, known), standingOf(after, true)
	if was == unseen {
		kinds = append(kinds, Appeared)
	}
	switch {
	case has(after.Findings, OffBus) && !has(before.Findings, OffBus):
		if replaced {
			kinds = append(kinds, Replaced)
		} else {
			kinds = append(kinds, Gone)
		}
	case was != is:
		switch {
		case is == faulty:
			kinds = append(kinds, BecameFaulty)
		case is == doubted:
			kinds = append(kinds, BecameUnknown)
		case is == waiting:
			kinds = append(kinds, OnProbation)
		case was != unseen:
			kinds = append(kinds, Recovered)
		}
	case !slices.Equal(causesOf(before.Findings), causesOf(after.Findings)):
		kinds = append(kinds, OtherCauses)
	}
	for _, w := range after.Warnings {
		if !has(before.Warnings, w.Cause) {
			return append(kinds, Warned)
		}
	}
	return kinds
}

func has(list []Finding, c Cause) bool {
	return slices.ContainsFunc(list, func(f Finding) bool { return f.Cause == c })
}
