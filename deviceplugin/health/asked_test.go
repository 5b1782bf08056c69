package health_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/eflib"
)

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
