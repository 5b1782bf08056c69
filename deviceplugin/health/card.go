package health

import (
	"fmt"
	"strings"
	"time"

	"github.com/topscloud/topscloud/eflib"
)

// Card is how a card stands. Its lists must not be changed.
type Card struct {
	Minor int
	// UUID is empty for a card that never told one.
	UUID string
	// Device is the card as last seen. After a restart, and until it is seen, it has no more than what a
	// node announces of a card.
	Device eflib.Device
	// Present says whether the card is in the host's list now.
	Present bool
	// Faulty says that a fault is proven: IDs that are held on the card become unhealthy, and nobody new
	// gets it.
	Faulty bool
	// Usable says whether the card may be given to new holders: it is present and not faulty, its health
	// is known (or checks are off), and its probation is over.
	Usable bool
	// Findings are what is wrong, what is proven first; Warnings keep nobody away.
	Findings, Warnings []Finding
	// ProbationUntil is zero when the card is not on probation.
	ProbationUntil time.Time
	// After are the causes of the fault that the probation follows.
	After []Cause
}

// Problem returns why the card cannot be given to new holders, in words, and "" for a usable card. It is
// the health text of the node's announcement and does not change from look to look.
func (c *Card) Problem() string {
	switch {
	case c.Usable:
		return ""
	case len(c.Findings) > 0:
		first := c.Findings[0]
		text := fmt.Sprintf("%s: %s", first.Cause, first.Message)
		if rest := c.Findings[1:]; len(rest) > 0 {
			text += "; also " + list(causesOf(rest))
		}
		return text
	case !c.ProbationUntil.IsZero():
		text := "on probation until " + c.ProbationUntil.UTC().Format(time.RFC3339)
		if len(c.After) > 0 {
			text += " after " + list(c.After)
		}
		return text
	}
	return "not seen yet"
}

// Report is how all cards and the host stand.
type Report struct {
	// Cards are sorted by minor, then uuid. A card that is gone stays listed until it is forgotten.
	Cards []Card
	// Host is what is wrong with no single card: the driver is not loaded, the library hangs, health
	// cannot be checked, the cards cannot be listed.
	Host []Finding
}

func causesOf(list []Finding) []Cause {
	causes := make([]Cause, len(list))
	for i := range list {
		causes[i] = list[i].Cause
	}
	return causes
}

func list(causes []Cause) string {
	words := make([]string, len(causes))
	for i, c := range causes {
		words[i] = string(c)
	}
	return strings.Join(words, ", ")
}
