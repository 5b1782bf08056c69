package health

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/topology"
)

// scene is what one Update says of the host as a whole.
type scene struct {
	driverGone bool
	// complete says that a card that is not in the list is not in the host.
	complete bool
	// byEntry are the errors about single cards, by PCI address.
	byEntry map[string]error
	// asked says that the cards themselves were asked; hangs that several were, and none answered.
	asked, hangs bool
	// err is what is wrong with the list as a whole.
	err error
}

// setting reads the parts of an Update that are about no single card. asked has one answer per device, or
// is nil.
func setting(state eflib.State, samples []eflib.Sample, asked []answer) scene {
	perCard, only := eflib.DeviceErrors(state.Err)
	s := scene{complete: only, asked: asked != nil}
	if !only {
		s.err = state.Err
	}
	for _, e := range perCard {
		// An error about a card that does not say where it is may be about any card that is missing.
		if _, err := topology.ParseAddress(e.Entry); err != nil {
			s.complete = false
			continue
		}
		if s.byEntry == nil {
			s.byEntry = map[string]error{}
		}
		s.byEntry[e.Entry] = errors.Join(s.byEntry[e.Entry], e.Err)
	}
	s.driverGone = s.err != nil && errors.Is(s.err, eflib.ErrDriverNotLoaded)
	silent, answered := 0, false
	for i := range asked {
		switch {
		case asked[i].why == DriverNotLoaded:
			s.driverGone = true
		case asked[i].why == Hang:
			silent++
		}
		answered = answered || !samples[i].Empty()
	}
	// A card that answered is a driver that is there, whatever an older list says.
	s.driverGone = s.driverGone && !answered
	s.hangs = silent > 1 && silent == len(asked)
	return s
}

// Messages of the host.
const (
	hostNoDriver = "the enflame driver is not loaded; no card can be used until it is (modprobe enflame, dmesg)"
	hostHangs    = "neither the driver's library nor any card answers in time; the driver or the machine is stuck or overloaded (dmesg)"
	hostUnasked  = "no card's health can be asked; install libefml (or efsmi) of the driver's release, or switch health checks off"
	hostNoList   = "the cards cannot be listed: "
)

// maxErrorText bounds an error's text in a message.
const maxErrorText = 200

// judgeHost states what is wrong with the host. listed has the cards that are in the list.
func (t *Tracker) judgeHost(now time.Time, s scene, listed []*track) {
	set := func(wrong bool, c Cause, message string) {
		if wrong {
			t.host.raise(now, c, doubt, message)
		} else {
			t.host.clear(c)
		}
	}
	timeout := errors.Is(s.err, eflib.ErrTimeout)
	set(s.driverGone, DriverNotLoaded, hostNoDriver)
	// What the watcher alone tells asks no card: cards that were silent are so until one of them speaks.
	hangs := s.hangs || !s.asked && len(listed) > 1 && allSilent(listed)
	set(!s.driverGone && (timeout || hangs), Hang, hostHangs)
	text := ""
	if s.err != nil {
		text = shorten(s.err.Error())
	}
	noList := s.err != nil && !timeout && !errors.Is(s.err, eflib.ErrDriverNotLoaded)
	set(noList, Unreadable, hostNoList+text)
	unasked := len(listed) > 0 && !t.off && !s.driverGone
	for _, c := range listed {
		unasked = unasked && (c.verdict.why == Unknown || c.verdict.why == Unreadable)
	}
	set(unasked, Unknown, hostUnasked)
}

// allSilent says whether no card has answered since it was last asked.
func allSilent(listed []*track) bool {
	return !slices.ContainsFunc(listed, func(c *track) bool { return c.verdict.why != Hang })
}

// shorten makes one line of limited length of an error's text.
func shorten(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if runes := []rune(text); len(runes) > maxErrorText {
		text = string(runes[:maxErrorText]) + "…"
	}
	return text
}
