package health_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/eflib"
)

// step is one look at the eight-card machine, card 3 in view.
type step struct {
	after  time.Duration // since the step before
	faults string
	watch  bool // only the watcher tells
	edit   func(*eflib.Sample)
	// restart starts a new tracker before the look.
	restart bool
	want    string // of card 3, as say puts it
	changes string
}

const ten = 10 * time.Second

func ecc(count uint32) func(*eflib.Sample) {
	return func(s *eflib.Sample) { s.ECC = eflib.ECCOf(eflib.ECC{Enabled: true, DoubleBit: count}) }
}

func hot(celsius float64) func(*eflib.Sample) {
	return func(s *eflib.Sample) { s.HBMCelsius = eflib.Celsius(celsius) }
}

func log(ids ...uint64) func(*eflib.Sample) {
	return func(s *eflib.Sample) {
		var list []eflib.ErrorRecord
		for _, id := range ids {
			list = append(list, eflib.ErrorRecord{ID: id, Timestamp: 100 + id})
		}
		s.ErrorRecords = eflib.Known(list)
	}
}

func called(text string, also func(*eflib.Sample)) func(*eflib.Sample) {
	return func(s *eflib.Sample) {
		also(s)
		s.Health = eflib.Known(eflib.Health{State: eflib.Unhealthy, Cause: text})
	}
}

func TestCards(t *testing.T) {
	t.Parallel()
	tests := map[string][]step{
		"a fault ends in probation, and probation by time": {
			{want: "usable"},
			{after: ten, faults: "unhealthy 3 broken", want: "faulty: reported", changes: "3 became faulty"},
			{after: ten, faults: "unhealthy 3 broken", want: "faulty: reported"},
			{after: ten, want: "probation", changes: "3 on probation"},
			{after: 59 * time.Second, want: "probation"},
			{after: time.Second, want: "usable", changes: "3 recovered"},
		},
		"the same bad news twice is bad news once, and bad, good, bad is bad": {
			{faults: "unhealthy 3 x", watch: true, want: "faulty: reported", changes: "3 became faulty"},
			{faults: "unhealthy 3 x", watch: true, want: "faulty: reported"},
			{after: ten, watch: true, want: "probation", changes: "3 on probation"},
			{after: ten, faults: "unhealthy 3 x", watch: true, want: "faulty: reported", changes: "3 became faulty"},
		},
		"flapping doubles the probation": {
			{want: "usable"},
			{faults: "unhealthy 3 x", want: "faulty: reported", changes: "3 became faulty"},
			{after: ten, want: "probation", changes: "3 on probation"},
			{after: ten, faults: "unhealthy 3 x", want: "faulty: reported", changes: "3 became faulty"},
			{after: ten, want: "probation", changes: "3 on probation"},
			{after: 119 * time.Second, want: "probation"},
			{after: time.Second, want: "usable", changes: "3 recovered"},
			{after: 63 * time.Minute, faults: "unhealthy 3 x", want: "faulty: reported", changes: "3 became faulty"},
			{after: ten, want: "probation", changes: "3 on probation"},
			{after: 4 * time.Minute, want: "usable", changes: "3 recovered"},
			{after: 65 * time.Minute, faults: "unhealthy 3 x", want: "faulty: reported", changes: "3 became faulty"},
			{after: ten, want: "probation", changes: "3 on probation"},
			{after: time.Minute, want: "usable", changes: "3 recovered"},
		},
		"a card off the bus is gone, and back on probation": {
			{want: "usable"},
			{after: ten, faults: "unplug 3", watch: true, want: "absent faulty: off-bus", changes: "3 gone"},
			{after: ten, faults: "unplug 3", want: "absent faulty: off-bus"},
			{after: ten, watch: true, want: "probation", changes: "3 on probation"},
			{after: time.Minute, want: "usable", changes: "3 recovered"},
		},
		"a card that cannot be read is not gone": {
			{want: "usable"},
			{after: ten, faults: "unreadable 3", want: "absent unknown: unreadable", changes: "3 became unknown"},
			{after: ten, want: "usable", changes: "3 recovered"},
		},
		"a driver that goes is no fault of the card and needs no probation": {
			{want: "usable"},
			{after: ten, faults: "driver none", want: "unknown: driver-not-loaded", changes: every("became unknown")},
			{after: ten, faults: "driver none", watch: true, want: "unknown: driver-not-loaded"},
			{after: ten, want: "usable", changes: every("recovered")},
		},
		"a faulty card stays faulty while the driver is away": {
			{faults: "unhealthy 3 x", want: "faulty: reported", changes: "3 became faulty"},
			{after: ten, faults: "driver none", want: "faulty: reported, driver-not-loaded", changes: every("became unknown", 3, "other causes")},
			{after: ten, faults: "unhealthy 3 x", want: "faulty: reported", changes: every("recovered", 3, "other causes")},
		},
		"a driver that is away when the agent starts": {
			{want: "usable"},
			{after: ten, restart: true, faults: "driver none", want: "absent unknown: driver-not-loaded", changes: every("became unknown")},
			{after: ten, want: "usable", changes: every("recovered")},
		},
		"a hang is unknown, and proven at the third look": {
			{want: "usable"},
			{after: ten, faults: "hang 3", want: "unknown: hang", changes: "3 became unknown"},
			{after: 1, faults: "hang 3", watch: true, want: "unknown: hang"},
			{after: 1, faults: "hang 3", watch: true, want: "unknown: hang"},
			{after: ten, faults: "hang 3", want: "unknown: hang"},
			{after: ten, faults: "hang 3", want: "faulty: hang", changes: "3 became faulty"},
			{after: ten, want: "probation", changes: "3 on probation"},
		},
		"a hang that ends in time leaves nothing": {
			{want: "usable"},
			{after: ten, faults: "hang 3", want: "unknown: hang", changes: "3 became unknown"},
			{after: ten, faults: "hang 3", want: "unknown: hang"},
			{after: ten, want: "usable", changes: "3 recovered"},
			{after: ten, faults: "hang 3", want: "unknown: hang", changes: "3 became unknown"},
		},
		"RMA": {
			{edit: func(s *eflib.Sample) { s.RMA = eflib.RMAOf(eflib.RMA{Flagged: true}) }, want: "faulty: rma", changes: "3 became faulty"},
			{after: ten, edit: func(s *eflib.Sample) { s.RMA = eflib.Unknown[eflib.RMA](errors.New("bus")) }, want: "faulty: rma"},
			{after: ten, want: "probation", changes: "3 on probation"},
		},
		"the driver's word and what is measured are one fault": {
			{faults: "too-hot 3", want: "faulty: over-temperature", changes: "3 became faulty"},
			{after: ten, faults: "ecc-double-bit 3", want: "faulty: ecc-double-bit", changes: "3 other causes"},
			{after: time.Minute, faults: "unhealthy 3 x", want: "faulty: reported", changes: "3 other causes"},
		},
		"over-temperature wavers without flapping": {
			{edit: hot(94.9), want: "usable"},
			{after: ten, edit: hot(95), want: "faulty: over-temperature", changes: "3 became faulty"},
			{after: ten, edit: hot(94), want: "faulty: over-temperature"},
			{after: ten, edit: hot(85), want: "faulty: over-temperature"},
			{after: ten, edit: func(s *eflib.Sample) { s.HBMCelsius = eflib.Unknown[float64](errors.New("bus")) }, want: "faulty: over-temperature"},
			{after: ten, edit: hot(84.9), want: "probation", changes: "3 on probation"},
			{after: ten, edit: hot(90), want: "probation"},
		},
		"old double-bit errors of a well card are a warning": {
			{edit: ecc(2), want: "usable (warned: ecc-double-bit)", changes: "3 warned"},
			{after: ten, edit: ecc(2), want: "usable (warned: ecc-double-bit)"},
			{after: ten, want: "usable"},
		},
		"a rise is a fault for a while, then a warning": {
			{want: "usable"},
			{after: ten, edit: ecc(1), want: "faulty: ecc-double-bit", changes: "3 became faulty"},
			{after: 59 * time.Second, edit: ecc(1), want: "faulty: ecc-double-bit"},
			{after: time.Second, watch: true, want: "faulty: ecc-double-bit"},
			{after: time.Second, edit: ecc(1), want: "probation (warned: ecc-double-bit)", changes: "3 on probation; 3 warned"},
			{after: time.Minute, edit: ecc(1), want: "usable (warned: ecc-double-bit)", changes: "3 recovered"},
		},
		"a counter that was reset and rose since": {
			{edit: ecc(5), want: "usable (warned: ecc-double-bit)", changes: "3 warned"},
			{after: ten, edit: ecc(0), want: "usable"},
			{after: ten, edit: ecc(1), want: "faulty: ecc-double-bit", changes: "3 became faulty"},
		},
		"a counter that was reset and rose between two looks": {
			{edit: ecc(5), want: "usable (warned: ecc-double-bit)", changes: "3 warned"},
			{after: ten, edit: ecc(2), want: "faulty: ecc-double-bit", changes: "3 became faulty"},
		},
		"a restart raises no old errors again": {
			{edit: ecc(5), want: "usable (warned: ecc-double-bit)", changes: "3 warned"},
			{after: ten, restart: true, edit: ecc(5), want: "usable (warned: ecc-double-bit)"},
			{after: ten, restart: true, edit: ecc(2), want: "usable (warned: ecc-double-bit)"},
			{after: ten, restart: true, edit: ecc(3), want: "faulty: ecc-double-bit", changes: "3 became faulty"},
		},
		"a restart shortens no probation and tells nothing twice": {
			{faults: "unhealthy 3 x", want: "faulty: reported", changes: "3 became faulty"},
			{after: ten, restart: true, faults: "unhealthy 3 x", want: "faulty: reported"},
			{after: ten, restart: true, want: "probation", changes: "3 on probation"},
			{after: 30 * time.Second, restart: true, want: "probation"},
			{after: 29 * time.Second, restart: true, watch: true, want: "probation"},
			{after: time.Second, restart: true, want: "usable", changes: "3 recovered"},
		},
		"a restart forgets no fault that the list does not tell": {
			{edit: called("stuck", ecc(0)), want: "faulty: reported", changes: "3 became faulty"},
			{after: ten, restart: true, watch: true, want: "faulty: reported"},
			{after: ten, want: "probation", changes: "3 on probation"},
		},
		"new error records are a warning for a while": {
			{edit: log(1, 2), want: "usable"},
			{after: ten, edit: log(1, 2, 3), want: "usable (warned: error-event)", changes: "3 warned"},
			{after: ten, edit: log(2, 3), want: "usable (warned: error-event)"},
			{after: 50 * time.Second, edit: log(2, 3), want: "usable"},
			{after: ten, restart: true, edit: log(2, 3), want: "usable"},
			{after: ten, restart: true, edit: log(2, 3, 4), want: "usable (warned: error-event)", changes: "3 warned"},
		},
		"error records of a card that is called unhealthy": {
			{edit: log(1), want: "usable"},
			{after: ten, edit: called("stuck", log(1, 2)), want: "faulty: error-event, reported", changes: "3 became faulty"},
			{after: time.Hour, edit: called("stuck", log(1, 2)), want: "faulty: reported", changes: "3 other causes"},
			{after: ten, edit: log(1, 2), want: "probation", changes: "3 on probation"},
		},
		"a narrow link is a warning": {
			{faults: "link 3 5 8", want: "usable (warned: link-narrow)", changes: "3 warned"},
			{after: ten, faults: "link 3 1 16", want: "usable"},
		},
		"health that cannot be asked is unknown": {
			{want: "usable"},
			{after: ten, edit: func(s *eflib.Sample) { s.Health = eflib.Unknown[eflib.Health](errors.New("bus")) }, want: "unknown: unreadable", changes: "3 became unknown"},
			{after: ten, want: "usable", changes: "3 recovered"},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, "s60x8", health.Options{})
			for i, s := range steps {
				h.now = h.now.Add(s.after)
				if s.restart {
					h.restart()
				}
				h.edit = map[int]func(*eflib.Sample){3: s.edit}
				saw := h.look(s.faults)
				if s.watch {
					saw.samples, saw.errs = nil, nil
				}
				changes := kinds(h.update(saw))
				if got := say(h.card(3)); got != s.want || changes != s.changes {
					t.Errorf("step %d: got  %q, told %q\n        want %q, told %q", i+1, got, changes, s.want, s.changes)
				}
				if c := h.card(3); (c.Problem() == "") != c.Usable {
					t.Errorf("step %d: usable %v, problem %q", i+1, c.Usable, c.Problem())
				}
			}
		})
	}
}

// every returns the changes when all eight cards change alike, but for one.
func every(kind string, but ...any) string {
	var words []string
	for minor := range 8 {
		k := kind
		if len(but) > 0 && minor == but[0] {
			k = but[1].(string)
		}
		words = append(words, string(rune('0'+minor))+" "+k)
	}
	return strings.Join(words, "; ")
}

// Case 16: the cards are listed and their health cannot be asked; later it can.
func TestHealthCannotBeAsked(t *testing.T) {
	t.Parallel()
	problems := map[string]error{
		"no library":             eflib.ErrNotSupported,
		"the library is refused": errors.New("version mismatch"),
	}
	for name, problem := range problems {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			usable := func(h *host) (n int) {
				for _, c := range h.tracker.Report().Cards {
					if c.Usable {
						n++
					}
					if c.Faulty {
						t.Errorf("card %d is faulty: %v", c.Minor, c.Findings)
					}
				}
				return n
			}
			blind := func(h *host) seen {
				s := h.look("")
				for i := range s.samples {
					s.state.Devices[i].Health = eflib.UnknownHealth(problem)
					s.samples[i] = eflib.Sample{Minor: i}
					s.samples[i].Fail(eflib.AllFields, s.state.Devices[i].Entry(), problem)
				}
				return s
			}
			h := newHost(t, "s60x8", health.Options{})
			h.update(blind(h))
			if got := usable(h); got != 0 {
				t.Errorf("%d usable", got)
			}
			if host := causes(h.tracker.Report().Host); host != "unknown" {
				t.Errorf("host: %s", host)
			}
			h.now = h.now.Add(time.Minute)
			h.update(h.look(""))
			if got := usable(h); got != 8 {
				t.Errorf("%d usable after one look that works", got)
			}
			if host := h.tracker.Report().Host; len(host) > 0 {
				t.Errorf("host: %v", host)
			}

			off := newHost(t, "s60x8", health.Options{Off: true})
			off.update(blind(off))
			if got := usable(off); got != 8 || off.tracker.Fields() != 0 || len(off.tracker.Report().Host) > 0 {
				t.Errorf("checks off: %d usable, asks %b, host %v", got, off.tracker.Fields(), off.tracker.Report().Host)
			}
		})
	}
}

func TestChecksOff(t *testing.T) {
	t.Parallel()
	tests := map[string]string{ // card 3
		"hang 3":             "usable",
		"link 3 5 8":         "usable",
		"unhealthy 3 broken": "faulty: reported",
		"unplug 3":           "absent faulty: off-bus",
		"unreadable 3":       "absent unknown: unreadable",
		"driver none":        "unknown: driver-not-loaded",
	}
	for faults, want := range tests {
		h := newHost(t, "s60x8", health.Options{Off: true})
		h.update(h.look(""))
		h.update(h.look(faults))
		if got := say(h.card(3)); got != want {
			t.Errorf("%s: got %s, want %s", faults, got, want)
		}
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	h := newHost(t, "s60x8", health.Options{})
	h.update(h.look(""))
	allHang := "hang 0\nhang 1\nhang 2\nhang 3\nhang 4\nhang 5\nhang 6\nhang 7"
	for range 5 {
		h.now = h.now.Add(ten)
		h.update(h.look(allHang))
	}
	if got := say(h.card(3)); got != "unknown: hang" {
		t.Errorf("nobody answers, so it is not the card: %s", got)
	}
	r := h.tracker.Report()
	if len(r.Host) != 1 || r.Host[0].Cause != health.Hang || !r.Host[0].Since.Equal(start.Add(ten)) {
		t.Errorf("host: %v", r.Host)
	}
	h.update(h.look("driver none"))
	if got := causes(h.tracker.Report().Host); got != "driver-not-loaded" {
		t.Errorf("host: %s", got)
	}
	// An older list says that there is no driver, and a card answered since.
	fresh := h.look("")
	fresh.state.Err = eflib.ErrDriverNotLoaded
	h.update(fresh)
	if got := say(h.card(3)); got != "usable" {
		t.Error(got)
	}
	s := h.look("")
	s.state = eflib.State{Devices: s.state.Devices, Err: errors.New("no\nsuch file")}
	h.update(s)
	if r := h.tracker.Report(); causes(r.Host) != "unreadable" || !strings.HasSuffix(r.Host[0].Message, "no such file") {
		t.Errorf("host: %v", r.Host)
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	h := newHost(t, "s60x8", health.Options{})
	old := h.machine.Cards[3].UUID
	h.update(h.look("unhealthy 3 x"))

	h.machine.Cards[3].UUID = "GCU-NEW"
	changes := h.update(h.look(""))
	if got := kinds(changes); got != "3 replaced" {
		t.Errorf("told %s", got)
	}
	if c := h.card(3); c.UUID != "GCU-NEW" || say(c) != "usable" {
		t.Errorf("the new card: %s %s", c.UUID, say(c))
	}
	var was *health.Card
	for _, c := range h.tracker.Report().Cards {
		if c.UUID == old {
			was = &c
		}
	}
	if was == nil || was.Present || !was.Faulty || causes(was.Findings) != "off-bus" {
		t.Errorf("the old card: %+v", was)
	}
	if h.tracker.Forget("GCU-NEW") || !h.tracker.Forget(old) || len(h.tracker.Report().Cards) != 8 {
		t.Error("only a card that is gone is forgotten")
	}

	// The cards are numbered anew: nobody is gone.
	h.machine.Cards[3].Minor, h.machine.Cards[4].Minor = 4, 3
	if got := h.update(h.look("")); len(got) > 0 {
		t.Errorf("told %s", kinds(got))
	}
	if c := h.card(4); c.UUID != "GCU-NEW" {
		t.Errorf("card 4 is %s", c.UUID)
	}

	// A card that does not tell its uuid is the one that was there.
	uuid := h.machine.Cards[0].UUID
	h.machine.Cards[0].UUID = ""
	h.restart()
	if got := h.update(h.look("")); len(got) > 0 || h.card(0).UUID != uuid {
		t.Errorf("told %s; card 0 is %q", kinds(got), h.card(0).UUID)
	}
}

func TestIncompleteList(t *testing.T) {
	t.Parallel()
	for name, problem := range map[string]error{
		"one of the cards did not say where it is": &eflib.DeviceError{Entry: "index 2", Err: errors.New("bus")},
		"something is wrong with the list":         errors.New("read: input/output error"),
	} {
		h := newHost(t, "s60x8", health.Options{})
		h.update(h.look(""))
		s := h.look("unplug 3")
		s.state.Err = problem
		h.update(s)
		if got := say(h.card(3)); got != "absent unknown: unreadable" {
			t.Errorf("%s: %s", name, got)
		}
	}
	h := newHost(t, "s60x8", health.Options{})
	h.update(h.look(""))
	s := h.look("unplug 3")
	s.state.Err = &eflib.DeviceError{Entry: h.machine.Cards[3].Entry(), Err: eflib.ErrNotBound}
	h.update(s)
	if got := say(h.card(3)); got != "absent faulty: off-bus" {
		t.Errorf("not bound: %s", got)
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	h := newHost(t, "s60x8", health.Options{})
	h.update(h.look("unhealthy 3 x"))
	if got := h.tracker.Next(h.now); got != 0 {
		t.Errorf("a fault ends by itself in %v", got)
	}
	h.update(h.look("unhealthy 5 x"))
	h.now = h.now.Add(ten)
	h.update(h.look(""))
	if got := h.tracker.Next(h.now); got != 50*time.Second {
		t.Errorf("next in %v", got)
	}
	h.now = h.now.Add(50 * time.Second)
	if got := h.tracker.Next(h.now); got != 1 {
		t.Errorf("due, and next is %v", got)
	}
	s := h.look("")
	if got := kinds(h.tracker.Update(h.now, s.state, nil, nil)); got != "3 recovered" {
		t.Errorf("told %s", got)
	}
}

func TestThresholds(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]health.Thresholds{
		"cool is not below hot":    {HotCelsius: 80, CoolCelsius: 80},
		"cool by default, not hot": {HotCelsius: 80},
		"negative probation":       {Probation: -1},
		"probation of days":        {Probation: 48 * time.Hour},
		"negative looks":           {HangLooks: -1},
	} {
		if _, err := health.New(health.Options{Thresholds: limits}, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A clock that was years ahead when the history was written closes no card for years.
func TestClockThatWasAhead(t *testing.T) {
	t.Parallel()
	h := newHost(t, "s60x8", health.Options{})
	h.now = start.AddDate(30, 0, 0)
	h.update(h.look("unhealthy 3 x"))
	h.update(h.look(""))
	h.now = start
	h.restart()
	h.update(h.look(""))
	if got := say(h.card(3)); got != "probation" {
		t.Error(got)
	}
	h.now = h.now.Add(16 * time.Minute)
	h.update(h.look(""))
	if got := say(h.card(3)); got != "usable" {
		t.Error(got)
	}
}

func TestMessagesAreSteady(t *testing.T) {
	t.Parallel()
	h := newHost(t, "s60x8", health.Options{})
	h.edit = map[int]func(*eflib.Sample){3: hot(101)}
	h.update(h.look("ecc-double-bit 3 1"))
	before, past := h.card(3), h.tracker.History()
	h.now = h.now.Add(ten)
	h.edit[3] = hot(97)
	if changes := h.update(h.look("ecc-double-bit 3 1")); len(changes) > 0 {
		t.Errorf("told %s", kinds(changes))
	}
	if after := h.card(3); before.Problem() != after.Problem() || before.Problem() == "" {
		t.Errorf("%q became %q", before.Problem(), after.Problem())
	}
	// Or the agent would write a file at every look.
	if diff := cmp.Diff(past, h.tracker.History()); diff != "" {
		t.Errorf("the history changed:\n%s", diff)
	}
}

func BenchmarkUpdate(b *testing.B) {
	h := newHost(b, "s60x8", health.Options{})
	eight := h.machine.Cards
	h.machine.Cards = nil
	for i := range 128 {
		d := eight[i%8]
		d.Minor, d.UUID = i, d.UUID+string(rune('A'+i/8))
		d.PCIAddress.Domain = uint32(i)
		h.machine.Cards = append(h.machine.Cards, d)
	}
	s := h.look("link 3 5 8\nunhealthy 7 x")
	for i := range s.samples { // a made-up machine is warmer the more cards it has
		s.samples[i].HBMCelsius, s.samples[i].ASICCelsius, s.samples[i].BoardCelsius = eflib.Celsius(50), eflib.Celsius(50), eflib.Celsius(50)
	}
	h.update(s)
	b.ReportAllocs()
	for b.Loop() {
		h.update(s)
	}
}
