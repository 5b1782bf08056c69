package health

import (
	"slices"
	"time"
)

// leastGrace bounds below how long a card that does not answer is still offered.
const leastGrace = 2 * time.Second

// Steady returns a report in which a card that was usable and has only just stopped to answer still is, for one
// look more. A machine that is busy for a second makes a look fail now and then, and to take free units away for
// that moment would make kubelet fail for good whatever pod it admits just then. The report passed as now is
// changed.
func Steady(before, now Report, at time.Time, interval time.Duration) Report {
	grace := max(interval, leastGrace)
	for i := range now.Cards {
		c := &now.Cards[i]
		if c.Usable || !c.Present || c.Faulty || len(c.Findings) == 0 {
			continue
		}
		short := !slices.ContainsFunc(c.Findings, func(f Finding) bool {
			return f.Cause != Hang && f.Cause != Unreadable || at.Sub(f.Since) >= grace
		})
		was := slices.ContainsFunc(before.Cards, func(b Card) bool { return b.UUID == c.UUID && b.Minor == c.Minor && b.Usable })
		c.Usable = short && was
	}
	return now
}
