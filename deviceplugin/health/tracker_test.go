package health_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/eflib"
)

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
