package health

import (
	"errors"

	"github.com/topscloud/topscloud/eflib"
)

// answer is what was said about the health of a card, by the list of cards or by the card itself.
type answer struct {
	state eflib.HealthState
	// text is the driver's own words for an unhealthy card.
	text string
	// why is set when state is unknown: DriverNotLoaded, Hang, Unreadable, or Unknown where health
	// cannot be asked at all.
	why Cause
}

func (a answer) known() bool { return a.state != eflib.HealthUnknown }

// The words that eflib has for a card that could not be asked. Health has no room for an error.
var (
	silent    = eflib.UnknownHealth(eflib.ErrTimeout)
	mute      = eflib.UnknownHealth(eflib.ErrNotSupported)
	driverOut = eflib.UnknownHealth(eflib.ErrDriverNotLoaded)
)

// answerOf reads the health of a device.
func answerOf(h eflib.Health) answer {
	switch {
	case h.State == eflib.Unhealthy:
		return answer{state: h.State, text: h.Cause}
	case h.State == eflib.Healthy:
		return answer{state: h.State}
	case h == silent:
		return answer{why: Hang}
	case h == driverOut:
		return answer{why: DriverNotLoaded}
	case h == mute, h.Cause == "":
		return answer{why: Unknown}
	}
	return answer{why: Unreadable}
}

// answerIn reads the health of a sample. err is about the card as a whole.
func answerIn(s *eflib.Sample, err error) answer {
	h, problem := s.Health.Get()
	if problem == nil {
		return answerOf(h)
	}
	if err != nil {
		problem = err
	}
	switch {
	case errors.Is(problem, eflib.ErrTimeout):
		return answer{why: Hang}
	case errors.Is(problem, eflib.ErrDriverNotLoaded):
		return answer{why: DriverNotLoaded}
	case tellsNothing(problem):
		return answer{why: Unknown}
	}
	return answer{why: Unreadable}
}

// tellsNothing says whether there is no value because nobody can or did ask, rather than because asking
// failed.
func tellsNothing(err error) bool {
	return errors.Is(err, eflib.ErrNotSupported) || errors.Is(err, eflib.ErrNotRead)
}

// unsupported says that a reading cannot be had, now or later.
func unsupported(err error) bool { return errors.Is(err, eflib.ErrNotSupported) }

// hear takes in what the list says of a listed card and, unless asked is nil, what the card says itself.
//
// List and sample do not come at the same time. A bad word counts from whichever side it comes. Otherwise
// the card's own word is the later one when there is one; without it, a list that says the same as before
// is no news, and a list that says something new is believed, except that it does not acquit a card that
// called itself unhealthy: that is for the next sample, or two sources of different age would make the card
// flap.
func (c *track) hear(told answer, asked *answer) {
	news := told != c.told || c.verdict == (answer{})
	c.told = told
	switch {
	case asked == nil && !news:
	case asked == nil && !told.known() && c.asked.state == eflib.Unhealthy,
		asked == nil && told.state == eflib.Healthy && c.asked.state == eflib.Unhealthy:
		c.verdict = c.asked
	case asked == nil:
		c.verdict = told
	default:
		c.asked, c.verdict = *asked, *asked
		if told.state == eflib.Unhealthy && asked.state != eflib.Unhealthy {
			c.verdict = told
		}
		if asked.why == Unknown {
			c.verdict = told
		}
	}
}
