package health

import (
	"cmp"
	"slices"
	"time"
)

// Cause is what is wrong, as one word for labels, conditions and code.
type Cause string

// The causes.
const (
	DriverNotLoaded Cause = "driver-not-loaded"
	OffBus          Cause = "off-bus"
	RMA             Cause = "rma"
	ECCDoubleBit    Cause = "ecc-double-bit"
	OverTemperature Cause = "over-temperature"
	ErrorEvent      Cause = "error-event"
	Hang            Cause = "hang"
	Unreadable      Cause = "unreadable"
	// Reported is a card that the driver calls unhealthy without more that could be measured.
	Reported Cause = "reported"
	// Unknown is health that cannot be asked.
	Unknown Cause = "unknown"
	// LinkNarrow is always a warning.
	LinkNarrow Cause = "link-narrow"
)

// Causes returns all causes, sorted.
func Causes() []Cause {
	return []Cause{DriverNotLoaded, ECCDoubleBit, ErrorEvent, Hang, LinkNarrow, OffBus, OverTemperature, Reported, RMA, Unknown, Unreadable}
}

// Finding is one thing that is wrong.
type Finding struct {
	Cause Cause
	// Message is for people: what was measured, what the limit is, what would help. It has no figures
	// that change from look to look.
	Message string
	Since   time.Time
}

// weight is what a finding does to a card.
type weight uint8

const (
	// warning does nothing.
	warning weight = iota + 1
	// doubt keeps new holders away, unless health checks are off.
	doubt
	// absence keeps new holders away.
	absence
	// proof makes the card Faulty.
	proof
)

// finding is a Finding with its weight.
type finding struct {
	Finding
	weight weight
}

// findings has at most one finding per cause, sorted by cause.
type findings []finding

func (f findings) at(c Cause) (int, bool) {
	return slices.BinarySearchFunc(f, c, func(x finding, c Cause) int { return cmp.Compare(x.Cause, c) })
}

// weightOf returns the weight of a cause, 0 where it is not found.
func (f findings) weightOf(c Cause) weight {
	if i, found := f.at(c); found {
		return f[i].weight
	}
	return 0
}

// worst returns the largest weight.
func (f findings) worst() weight {
	var w weight
	for i := range f {
		w = max(w, f[i].weight)
	}
	return w
}

// raise states a finding. Since stays as long as it is a finding or a warning throughout: a doubt that
// is proven began when the doubt did, an old warning that becomes a fault begins now.
func (f *findings) raise(now time.Time, c Cause, w weight, message string) {
	i, found := f.at(c)
	if !found {
		*f = slices.Insert(*f, i, finding{Finding{c, message, now}, w})
		return
	}
	x := &(*f)[i]
	if (x.weight == warning) != (w == warning) {
		x.Since = now
	}
	x.weight, x.Message = w, message
}

func (f *findings) clear(causes ...Cause) {
	for _, c := range causes {
		if i, found := f.at(c); found {
			*f = slices.Delete(*f, i, i+1)
		}
	}
}

// split returns what is wrong, the heaviest first, and the warnings.
func (f findings) split() (wrong, warnings []Finding) {
	for w := proof; w >= warning; w-- {
		for i := range f {
			switch {
			case f[i].weight != w:
			case w == warning:
				warnings = append(warnings, f[i].Finding)
			default:
				wrong = append(wrong, f[i].Finding)
			}
		}
	}
	return wrong, warnings
}
