package health

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/topscloud/topscloud/eflib"
)

// Messages of cards.
const (
	noDriver   = "the enflame driver is not loaded"
	gone       = "the card is not in the host any more; if nobody took it out, look for PCIe errors (dmesg) and power, and reseat it"
	unbound    = "the driver has let go of the card; look at dmesg, and reload the driver or reset the card"
	exchanged  = "another card is in its place"
	notListed  = "the card is not listed, and the list of cards is not complete"
	cannotRead = "the card is there and cannot be read; look at dmesg"
	notAsked   = "the card's health cannot be asked; install libefml (or efsmi) of the driver's release, or switch health checks off"
	noAnswer   = "the card does not answer in time; jobs that run may still finish; if it stays so, reset the card"
	marked     = "the card is marked for replacement (RMA); send it back"
	fewLanes   = "the PCIe link is narrower than it can be: %d of %d lanes; it works, slower; reseat the card, look at the riser and the slot"
	tooHot     = "a sensor reached %g °C; the card is well again when all are below %g °C; look at fans, air flow and neighbours"
	calledBad  = "the driver calls the card unhealthy"
)

// judgeListed states what a look says about a card that is in the list. sample is nil where the card was
// not asked.
func (t *Tracker) judgeListed(c *track, now time.Time, s scene, told answer, sample *eflib.Sample, asked *answer) {
	c.found.clear(OffBus)
	if s.driverGone {
		c.found.raise(now, DriverNotLoaded, absence, noDriver)
		c.acquit("")
		c.told, c.asked, c.verdict = answer{}, answer{}, answer{}
		return
	}
	c.found.clear(DriverNotLoaded)
	c.hear(told, asked)
	t.judgeDoubts(c, now, s, asked)
	if sample != nil {
		t.judgeRMA(c, now, sample)
		t.judgeHeat(c, now, sample)
		t.judgeLink(c, now, sample)
	}
	t.judgeECC(c, now, sample)
	t.judgeRecords(c, now, sample)
	c.judgeVerdict(now)
}

// acquit drops the doubts but one: something weightier takes their place.
func (c *track) acquit(but Cause) {
	for _, doubted := range [...]Cause{Unknown, Unreadable, Hang} {
		if doubted != but && c.found.weightOf(doubted) != proof {
			c.found.clear(doubted)
		}
	}
	if c.found.weightOf(Hang) != proof {
		c.silent = 0
	}
}

// judgeDoubts states whether the card answers and whether it can be asked.
func (t *Tracker) judgeDoubts(c *track, now time.Time, s scene, asked *answer) {
	hang := c.verdict.why == Hang || asked != nil && asked.why == Hang
	switch {
	case hang:
		// All of them silent: the library, not this card. An Update without samples is no look.
		if asked != nil && asked.why == Hang && !s.hangs && c.silent < t.limits.HangLooks {
			c.silent++
		}
		if c.silent >= t.limits.HangLooks || c.found.weightOf(Hang) == proof {
			c.found.raise(now, Hang, proof, noAnswer)
		} else {
			t.doubt(c, now, Hang, noAnswer)
		}
	case asked != nil || c.verdict.known() && c.asked.why != Hang:
		// A refusal is an answer too. A card that was silent when asked has to answer when asked.
		c.found.clear(Hang)
		c.silent = 0
	}
	switch {
	case c.verdict.known() || hang:
		c.found.clear(Unknown, Unreadable)
	case c.verdict.why == Unknown:
		c.found.clear(Unreadable)
		t.doubt(c, now, Unknown, notAsked)
	default:
		c.found.clear(Unknown)
		t.doubt(c, now, Unreadable, cannotRead)
	}
}

// doubt states something that is not known. With checks off nobody wants to know.
func (t *Tracker) doubt(c *track, now time.Time, cause Cause, message string) {
	if t.off {
		c.found.clear(cause)
		return
	}
	c.found.raise(now, cause, doubt, message)
}

func (t *Tracker) judgeRMA(c *track, now time.Time, s *eflib.Sample) {
	rma, err := s.RMA.Get()
	switch {
	case err == nil && rma.Flagged:
		c.found.raise(now, RMA, proof, marked)
	case err == nil || unsupported(err):
		c.found.clear(RMA)
	}
}

// judgeHeat looks at all sensors. One that fails does not acquit: it may be the one that was hot.
func (t *Tracker) judgeHeat(c *track, now time.Time, s *eflib.Sample) {
	hottest, readable, failed := 0.0, true, false
	for _, sensor := range [...]*eflib.Reading[float64]{&s.ASICCelsius, &s.HBMCelsius, &s.BoardCelsius} {
		celsius, err := sensor.Get()
		switch {
		case err == nil:
			hottest = max(hottest, celsius)
		case errors.Is(err, eflib.ErrNotRead):
			readable = false
		case !unsupported(err):
			failed = true
		}
	}
	switch {
	case hottest >= t.limits.HotCelsius:
		c.found.raise(now, OverTemperature, proof, fmt.Sprintf(tooHot, t.limits.HotCelsius, t.limits.CoolCelsius))
	case hottest < t.limits.CoolCelsius && readable && !failed:
		c.found.clear(OverTemperature)
	}
}

// judgeLink looks at the width alone: an idle link saves power by its speed.
func (t *Tracker) judgeLink(c *track, now time.Time, s *eflib.Sample) {
	link, err := s.PCIeLink.Get()
	switch {
	case err == nil && link.Width < link.MaxWidth:
		c.found.raise(now, LinkNarrow, warning, fmt.Sprintf(fewLanes, link.Width, link.MaxWidth))
	case err == nil || unsupported(err):
		c.found.clear(LinkNarrow)
	}
}

// judgeVerdict states that the driver calls the card unhealthy, where nothing that was measured says
// more. (Error records say that something happened, not what.) While health is unknown the last verdict stands.
func (c *track) judgeVerdict(now time.Time) {
	specific := false
	for _, cause := range [...]Cause{RMA, ECCDoubleBit, OverTemperature} {
		specific = specific || c.found.weightOf(cause) == proof
	}
	switch {
	case c.verdict.state == eflib.Unhealthy && !specific:
		message := calledBad
		if c.verdict.text != "" {
			message += ": " + shorten(c.verdict.text)
		}
		c.found.raise(now, Reported, proof, message)
	case c.verdict.known():
		c.found.clear(Reported)
	}
}

// judgeMissing states what it means that a known card is not in the list. That it is gone is stated alone:
// what was measured on it is of no use, and it is judged anew if it comes back.
func (t *Tracker) judgeMissing(c *track, now time.Time, s scene, replaced bool) {
	c.told, c.asked, c.verdict = answer{}, answer{}, answer{}
	if s.driverGone {
		c.found.raise(now, DriverNotLoaded, absence, noDriver)
		c.acquit("")
		return
	}
	c.found.clear(DriverNotLoaded)
	problem := s.byEntry[c.device.Entry()]
	lost := errors.Is(problem, eflib.ErrNotBound) || errors.Is(problem, eflib.ErrDeviceLost)
	message := ""
	switch {
	case replaced:
		message = exchanged
	case lost:
		message = unbound
	case problem != nil:
		// It is there, whatever was seen before. What is not listed cannot be given, with checks off neither.
		c.found.clear(OffBus)
		c.acquit(Unreadable)
		c.found.raise(now, Unreadable, absence, cannotRead)
		return
	case c.found.weightOf(OffBus) == proof:
		return // it was seen to go, and not to come back
	case !s.complete:
		c.acquit(Unreadable)
		c.found.raise(now, Unreadable, absence, notListed)
		return
	default:
		message = gone
	}
	c.found.raise(now, OffBus, proof, message)
	c.found.clear(slices.DeleteFunc(Causes(), func(cause Cause) bool { return cause == OffBus })...)
	c.silent = 0
}
