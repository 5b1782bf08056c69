package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/topscloud/topscloud/eflib"
)

// Tracker follows the health of a host's cards.
type Tracker struct {
	limits Thresholds
	off    bool
	// cards are sorted by minor, then uuid.
	cards []*track
	host  findings
	// started is set by the first Update.
	started bool
}

// track is what is known of one card.
type track struct {
	minor   int
	uuid    string
	device  eflib.Device
	present bool
	found   findings
	// told is what the list said last of the card's health, asked what the card itself said when it was
	// last asked, and verdict what follows.
	told, asked, verdict answer
	// silent counts the looks in a row that the card did not answer.
	silent int
	ecc    counter
	log    records
	parole parole
	// shown is the card as last reported; known says whether it was.
	shown Card
	known bool
}

// New returns a Tracker that goes on from a history, which may be nil.
func New(o Options, history *History) (*Tracker, error) {
	limits, err := o.Thresholds.withDefaults()
	if err != nil {
		return nil, err
	}
	t := &Tracker{limits: limits, off: o.Off}
	if history != nil {
		if err := history.validate(); err != nil {
			return nil, err
		}
		for i := range history.Cards {
			t.cards = append(t.cards, t.restore(&history.Cards[i]))
		}
		t.sort()
	}
	return t, nil
}

// Update takes in what was seen and returns what that changed, sorted by card. samples and errs are
// parallel to state.Devices; both are nil where only the watcher told something.
func (t *Tracker) Update(now time.Time, state eflib.State, samples []eflib.Sample, errs []error) []Change {
	if !t.started {
		t.started = true
		for _, c := range t.cards {
			t.restrain(c, now)
		}
	}
	var asked []answer
	if len(samples) == len(state.Devices) && !t.off {
		asked = make([]answer, len(samples))
		for i := range samples {
			var err error
			if len(errs) == len(samples) {
				err = errs[i]
			}
			asked[i] = answerIn(&samples[i], err)
		}
	}
	s := setting(state, samples, asked)
	listed := t.match(state.Devices)
	minors := make(map[int]bool, len(listed))
	for _, c := range t.cards {
		c.present = false
	}
	for i, c := range listed {
		d := state.Devices[i]
		minors[d.Minor] = true
		c.see(d)
		var sample *eflib.Sample
		var answer *answer
		if asked != nil {
			sample, answer = &samples[i], &asked[i]
		}
		t.judgeListed(c, now, s, answerOf(d.Health), sample, answer)
	}
	t.judgeHost(now, s, listed)
	t.sort()
	var out []Change
	for _, c := range t.cards {
		replaced := !c.present && minors[c.minor]
		if !c.present {
			t.judgeMissing(c, now, s, replaced)
		}
		t.follow(c, now)
		before, known := c.shown, c.known
		c.shown, c.known = c.show(), true
		for _, kind := range changes(&before, &c.shown, known, replaced) {
			out = append(out, Change{Kind: kind, Card: c.shown, Before: before})
		}
	}
	t.forgetOldest()
	return out
}

// show returns the card as it is reported.
func (c *track) show() Card {
	wrong, warnings := c.found.split()
	s := Card{
		Minor: c.minor, UUID: c.uuid, Device: c.device, Present: c.present,
		Faulty: c.found.worst() == proof, Findings: wrong, Warnings: warnings,
		ProbationUntil: c.parole.until,
	}
	if !s.ProbationUntil.IsZero() {
		s.After = c.parole.after
	}
	s.Usable = s.Present && len(wrong) == 0 && s.ProbationUntil.IsZero()
	return s
}

// Report returns how things stand since the last Update. It may be kept.
func (t *Tracker) Report() Report {
	r := Report{Cards: make([]Card, len(t.cards))}
	for i, c := range t.cards {
		r.Cards[i] = c.shown
	}
	r.Host, _ = t.host.split()
	return r
}

// maxGone is how many cards that are gone are remembered.
const maxGone = 128

// Forget drops a card that is gone, for a caller that knows that nobody holds it any more. It reports
// whether there was one; a card that is not known to be gone is not forgotten.
func (t *Tracker) Forget(uuid string) bool {
	n := len(t.cards)
	t.cards = slices.DeleteFunc(t.cards, func(c *track) bool { return c.uuid == uuid && c.isGone() })
	return len(t.cards) < n
}

// forgetOldest keeps the number of cards that are gone within its bound.
func (t *Tracker) forgetOldest() {
	var gone []*track
	for _, c := range t.cards {
		if !c.present {
			gone = append(gone, c)
		}
	}
	if len(gone) <= maxGone {
		return
	}
	slices.SortStableFunc(gone, func(a, b *track) int { return a.since().Compare(b.since()) })
	drop := gone[:len(gone)-maxGone]
	t.cards = slices.DeleteFunc(t.cards, func(c *track) bool { return slices.Contains(drop, c) })
}

func (c *track) isGone() bool { return !c.present && c.found.weightOf(OffBus) == proof }

// since returns when the card was seen to go, a late time for one that was not.
func (c *track) since() time.Time {
	if i, found := c.found.at(OffBus); found {
		return c.found[i].Since
	}
	return time.Unix(1<<40, 0)
}

func (t *Tracker) sort() {
	slices.SortStableFunc(t.cards, func(a, b *track) int {
		return cmp.Or(cmp.Compare(a.minor, b.minor), strings.Compare(a.uuid, b.uuid))
	})
}
