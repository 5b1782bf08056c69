package health

import (
	"slices"
	"time"
)

// parole is what a card's past costs it.
type parole struct {
	// ailing says that the card was faulty and has had findings ever since.
	ailing bool
	// after are the proven causes since then, sorted.
	after []Cause
	// until is when the probation ends, zero outside one.
	until time.Time
	// faults is how many faults in a row came before the card was calm for long, and calm when that is.
	faults int
	calm   time.Time
}

// length of the probation after so many faults in a row.
func (t *Tracker) length(faults int) time.Duration {
	factor := 1
	for ; faults > 1 && factor < maxFactor; faults-- {
		factor *= 2
	}
	return time.Duration(factor) * t.limits.Probation
}

// follow moves a card into probation and out of it, after its findings were stated.
func (t *Tracker) follow(c *track, now time.Time) {
	for _, until := range [...]*time.Time{&c.ecc.until, &c.log.until} {
		if !now.Before(*until) {
			*until = time.Time{}
		}
	}
	p := &c.parole
	worst := c.found.worst()
	if worst == proof {
		if !p.ailing {
			p.ailing, p.after, p.until = true, nil, time.Time{}
			if !now.Before(p.calm) {
				p.faults = 0
			}
			p.faults = min(p.faults+1, maxFaults)
		}
		for i := range c.found {
			if at, known := slices.BinarySearch(p.after, c.found[i].Cause); c.found[i].weight == proof && !known {
				p.after = slices.Insert(slices.Clone(p.after), at, c.found[i].Cause)
			}
		}
		return
	}
	if p.ailing && worst <= warning {
		p.ailing = false
		p.until = now.Add(t.length(p.faults))
		p.calm = p.until.Add(calmFactor * t.limits.Probation)
	}
	if !p.until.IsZero() && !now.Before(p.until) {
		p.until, p.after = time.Time{}, nil
	}
}

// maxFaults bounds what is counted; the length of a probation is at its limit long before.
const maxFaults = 1000

// restrain corrects times of an earlier run that cannot be: a clock that was wrong then must not close a
// card for years.
func (t *Tracker) restrain(c *track, now time.Time) {
	atMost := func(at *time.Time, d time.Duration) {
		if limit := now.Add(d); at.After(limit) {
			*at = limit
		}
	}
	longest := maxFactor * t.limits.Probation
	atMost(&c.parole.until, longest)
	atMost(&c.parole.calm, longest+calmFactor*t.limits.Probation)
	atMost(&c.ecc.until, t.limits.Probation)
	atMost(&c.log.until, t.limits.Probation)
	for i := range c.found {
		atMost(&c.found[i].Since, 0)
	}
}

// Next returns how long it is until something changes by time alone, so that an Update is due: a probation
// ends, or what a step left is forgotten. 0 is nothing.
func (t *Tracker) Next(now time.Time) time.Duration {
	var next time.Duration
	for _, c := range t.cards {
		for _, at := range [...]time.Time{c.parole.until, c.log.until} {
			if at.IsZero() {
				continue
			}
			// A moment that has passed without an Update is due at once.
			if d := max(at.Sub(now), 1); next == 0 || d < next {
				next = d
			}
		}
	}
	return next
}
