package health_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// host is a made-up machine, a tracker that looks at it and the clock both live by.
type host struct {
	t       testing.TB
	o       health.Options
	machine sim.Machine // without faults
	now     time.Time
	tracker *health.Tracker
	last    []eflib.Device
	// edit changes what the cards tell, by minor.
	edit map[int]func(*eflib.Sample)
}

func newHost(t testing.TB, preset string, o health.Options) *host {
	t.Helper()
	m, err := sim.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, o: o, machine: m, now: start}
	h.tracker = h.start(nil)
	return h
}

func (h *host) start(past *health.History) *health.Tracker {
	h.t.Helper()
	tr, err := health.New(h.o, past)
	if err != nil {
		h.t.Fatal(err)
	}
	return tr
}

// restart replaces the tracker by one that knows what the file of the first knew.
func (h *host) restart() {
	h.t.Helper()
	text, err := health.EncodeHistory(h.tracker.History())
	if err != nil {
		h.t.Fatal(err)
	}
	past, err := health.DecodeHistory(text)
	if err != nil {
		h.t.Fatal(err)
	}
	h.tracker, h.last = h.start(past), nil
}

// seen is what a watcher and a sampler have to say.
type seen struct {
	state   eflib.State
	samples []eflib.Sample
	errs    []error
}

// look returns what is to be seen of the machine with these faults; like a Poller it keeps the cards of
// the last list where nothing is known at all.
func (h *host) look(faults string) seen {
	h.t.Helper()
	m := h.machine.Clone()
	list, err := sim.ParseFaults(faults)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range list {
		if err := f.Apply(&m); err != nil {
			h.t.Fatal(err)
		}
	}
	devices, err := m.Devices(h.t.Context())
	s := seen{state: eflib.State{Devices: devices, Err: err}}
	if _, partial := eflib.DeviceErrors(err); !partial && len(devices) == 0 {
		s.state.Devices = slices.Clone(h.last)
		for i := range s.state.Devices {
			s.state.Devices[i].Health = eflib.UnknownHealth(err)
		}
	}
	h.last = s.state.Devices
	late, cancel := context.WithDeadline(h.t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, d := range s.state.Devices {
		ctx := h.t.Context()
		if m.Hangs(d.Minor) {
			ctx = late // its time is up at once
		}
		sample, err := m.Sample(ctx, d, h.tracker.Fields())
		if edit := h.edit[d.Minor]; edit != nil && err == nil {
			edit(&sample)
		}
		s.samples, s.errs = append(s.samples, sample), append(s.errs, err)
	}
	return s
}

func (h *host) update(s seen) []health.Change {
	return h.tracker.Update(h.now, s.state, s.samples, s.errs)
}

// card returns the card at a minor, the one that is present if there are several.
func (h *host) card(minor int) health.Card {
	h.t.Helper()
	var found *health.Card
	r := h.tracker.Report()
	for i, c := range r.Cards {
		if c.Minor == minor && (found == nil || c.Present) {
			found = &r.Cards[i]
		}
	}
	if found == nil {
		h.t.Fatalf("no card %d", minor)
	}
	return *found
}

// say puts a card into words: "usable", "faulty: rma, reported", "unknown: hang", "probation", with
// "absent " before and " (warned: …)" behind where that is so.
func say(c health.Card) string {
	text := "usable"
	switch {
	case c.Faulty:
		text = "faulty: " + causes(c.Findings)
	case len(c.Findings) > 0:
		text = "unknown: " + causes(c.Findings)
	case !c.ProbationUntil.IsZero():
		text = "probation"
	case !c.Usable && c.Present:
		text = "not usable"
	}
	if !c.Present {
		text = "absent " + text
	}
	if len(c.Warnings) > 0 {
		text += " (warned: " + causes(c.Warnings) + ")"
	}
	return text
}

func causes(list []health.Finding) string {
	var words []string
	for _, f := range list {
		words = append(words, string(f.Cause))
	}
	return strings.Join(words, ", ")
}

// kinds puts changes into words: "3 became faulty; 3 warned".
func kinds(changes []health.Change) string {
	var words []string
	for _, c := range changes {
		if c.Kind != health.Appeared {
			words = append(words, fmt.Sprintf("%d %v", c.Card.Minor, c.Kind))
		}
	}
	return strings.Join(words, "; ")
}

// All cards are silent; then the watcher tells something, with which no card is asked. The host still hangs until a card
// answers: it used to be well from one to the other, and to hang again with the next look.
func TestSilentHostStaysSilent(t *testing.T) {
	t.Parallel()
	h := newHost(t, "t20x4", health.Options{})
	h.update(h.look(""))
	silent := h.look("hang 0\nhang 1\nhang 2\nhang 3")
	h.update(silent)
	host := func() string { return causes(h.tracker.Report().Host) }
	if got := host(); got != "hang" {
		t.Fatalf("no card answers: %q", got)
	}
	h.tracker.Update(h.now, silent.state, nil, nil)
	if got := host(); got != "hang" {
		t.Errorf("the watcher's word alone: %q, want hang", got)
	}
	h.update(h.look("hang 0\nhang 1\nhang 2"))
	if got := host(); got != "" {
		t.Errorf("a card answers: %q", got)
	}
}
