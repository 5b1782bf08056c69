package eflibtest

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
)

// Rig is a back end over a machine that can be changed while it is in use.
type Rig struct {
	eflib.Inventory
	eflib.Telemetry
	// Show changes the machine.
	Show func(m sim.Machine)
}

// Can is what a back end is able to tell; the suite holds it to that and to nothing more.
type Can struct {
	// Fields are those of which it has at least one reading.
	Fields eflib.Field
	// Alone says that a card that hangs does not hide the others.
	Alone bool
	// Joined says that a card that does not answer keeps the identity it had.
	Joined bool
	// Slow is how old an answer may be.
	Slow time.Duration
}

// TestTelemetry runs the suite for Telemetry, and for Watcher where the back end tells health.
func TestTelemetry(t *testing.T, can Can, open func(t *testing.T, m sim.Machine) Rig) {
	suite := telemetry{can, open}
	t.Run("reads what the card has", suite.reads)
	t.Run("a card that is gone", suite.gone)
	t.Run("the driver is reloaded", suite.reload)
	t.Run("a context that has ended", suite.ended)
	if can.Fields.Has(eflib.FieldHealth) {
		t.Run("a card that hangs", suite.hangs)
		t.Run("watches health and presence", suite.watches)
	}
}

type telemetry struct {
	can  Can
	open func(t *testing.T, m sim.Machine) Rig
}

func (s telemetry) reads(t *testing.T) {
	for _, name := range []string{"t10x8", "s60x8", "mixed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := preset(t, name)
			slices.Reverse(m.Cards)
			apply(t, &m, "memory-used 0 1024", "link 1 3 8", "virtualization 2 vgcu", "ecc-double-bit 3 2", "unhealthy 1 fan")
			rig := s.open(t, m)
			for _, card := range devices(t, rig) {
				s.compare(t, m, rig, card)
			}
		})
	}
}

// compare holds each reading to that of the machine. A back end that has a field may still lack some
// reading of it, but only as not supported.
func (s telemetry) compare(t *testing.T, m sim.Machine, rig Rig, card eflib.Device) {
	t.Helper()
	got, err := rig.Sample(t.Context(), card, eflib.AllFields)
	if err != nil {
		t.Fatalf("card %d: %v", card.Minor, err)
	}
	want, err := m.Sample(t.Context(), card, eflib.AllFields)
	if err != nil {
		t.Fatal(err)
	}
	trim(&got)
	trim(&want)
	if expect := s.can.Fields & want.Fields(); got.Minor != card.Minor || !got.Fields().Has(expect) {
		t.Errorf("card %d: has fields %b, want %b", card.Minor, got.Fields(), expect)
	}
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		reading, ok := g.Field(i).Interface().(interface{ Err() error })
		if !ok {
			continue
		}
		name := g.Type().Field(i).Name
		if err := reading.Err(); err != nil {
			var named *eflib.DeviceError
			if !errors.Is(err, eflib.ErrNotSupported) || !errors.As(err, &named) || named.Entry != card.Entry() || named.Reading == "" {
				t.Errorf("card %d: %s: %v", card.Minor, name, err)
			}
			continue
		}
		if diff := cmp.Diff(w.Field(i).Interface(), g.Field(i).Interface()); diff != "" {
			t.Errorf("card %d: %s (-want +got):\n%s", card.Minor, name, diff)
		}
	}
	none, err := rig.Sample(t.Context(), card, 0)
	if err != nil || !none.Empty() || !errors.Is(none.Memory.Err(), eflib.ErrNotRead) {
		t.Errorf("nothing was asked: got %v, %v", none, err)
	}
}

// trim leaves out what differs between back ends: the words of a cause, and texts of the identity that
// not all have.
func trim(s *eflib.Sample) {
	if h, known := s.Health.Value(); known {
		h.Cause = ""
		s.Health = eflib.Known(h)
	}
	if id, known := s.Identity.Value(); known {
		s.Identity = eflib.Known(eflib.Identity{Name: id.Name, UUID: id.UUID, SerialNumber: id.SerialNumber})
	}
}

func (s telemetry) gone(t *testing.T) {
	t.Parallel()
	m := preset(t, "s60x8")
	rig := s.open(t, m)
	cards := devices(t, rig)
	m.Remove(3)
	rig.Show(m)
	s.settle()
	sample, err := rig.Sample(t.Context(), cards[3], eflib.AllFields)
	if !errors.Is(err, eflib.ErrDeviceLost) || !sample.Empty() || !errors.Is(sample.Memory.Err(), eflib.ErrDeviceLost) {
		t.Errorf("got %v, memory %v", err, sample.Memory)
	}
	if _, err := rig.Sample(t.Context(), cards[4], s.can.Fields); err != nil {
		t.Errorf("another card: %v", err)
	}
}

func (s telemetry) reload(t *testing.T) {
	t.Parallel()
	m := preset(t, "mixed")
	rig := s.open(t, m)
	card := devices(t, rig)[1]
	for range 2 {
		without := m.Clone()
		without.DriverVersion = ""
		rig.Show(without)
		s.settle()
		if got, err := rig.Sample(t.Context(), card, s.can.Fields); !errors.Is(err, eflib.ErrDriverNotLoaded) || !got.Empty() {
			t.Errorf("without the driver: got %v", err)
		}
		rig.Show(m)
		eventually(t, func() bool {
			got, err := rig.Sample(t.Context(), card, s.can.Fields)
			return err == nil && got.Fields().Has(s.can.Fields&^eflib.FieldClusterUsage)
		})
	}
}

func (s telemetry) ended(t *testing.T) {
	t.Parallel()
	rig := s.open(t, preset(t, "mixed"))
	card := devices(t, rig)[0]
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := rig.Sample(ctx, card, eflib.AllFields); !errors.Is(err, context.Canceled) || !got.Empty() {
		t.Errorf("cancelled: got %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), -1)
	defer cancel()
	if got, err := rig.Sample(ctx, card, eflib.AllFields); !errors.Is(err, eflib.ErrTimeout) || !got.Empty() {
		t.Errorf("too late: got %v", err)
	}
}

// hangs is case 42: a card whose reads block for ever, asked a hundred times.
func (s telemetry) hangs(t *testing.T) {
	m := preset(t, "s60x8")
	rig := s.open(t, m)
	cards := devices(t, rig)
	stuck := m.Clone()
	apply(t, &stuck, "hang 3")
	rig.Show(stuck)
	s.settle()
	before := runtime.NumGoroutine()
	for round := range 100 {
		samples, errs := eflib.SampleAll(t.Context(), rig, cards, eflib.FieldMemory|eflib.FieldHealth, 30*time.Millisecond)
		if !errors.Is(errs[3], eflib.ErrTimeout) || !samples[3].Empty() {
			t.Fatalf("round %d: the card that hangs: %v, %v", round, samples[3].Memory, errs[3])
		}
		if round > 0 || !s.can.Alone {
			continue
		}
		samples, errs = eflib.SampleAll(t.Context(), rig, cards, eflib.FieldMemory|eflib.FieldHealth, time.Second)
		for i := range cards {
			if _, known := samples[i].Memory.Value(); i != 3 && (!known || errs[i] != nil) {
				t.Errorf("card %d does not hang: %v, %v", i, samples[i].Memory, errs[i])
			}
		}
	}
	if after := runtime.NumGoroutine(); after > before+20 {
		t.Errorf("%d goroutines, %d before", after, before)
	}
	if s.can.Alone {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		found, _ := rig.Devices(ctx)
		for _, d := range found {
			if well := d.Health.State == eflib.Healthy; well != (d.Minor != cards[3].Minor) {
				t.Errorf("card %d: %+v", d.Minor, d.Health)
			}
			if d.UUID != cards[slices.IndexFunc(cards, func(c eflib.Device) bool { return c.Minor == d.Minor })].UUID && s.can.Joined {
				t.Errorf("card %d changed its uuid to %q", d.Minor, d.UUID)
			}
		}
	}
	rig.Show(m)
	eventually(t, func() bool {
		_, err := rig.Sample(t.Context(), cards[3], eflib.FieldMemory)
		return err == nil
	})
}

// watches is case 15: the last state sent is the last state seen, and nothing is sent without a change.
func (s telemetry) watches(t *testing.T) {
	t.Parallel()
	m := preset(t, "mixed")
	rig := s.open(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	states := eflib.NewPoller(rig, 20*time.Millisecond+s.can.Slow, nil).Watch(ctx)
	healthy := func(want ...bool) {
		t.Helper()
		end := time.After(10 * time.Second)
		var last eflib.State
		for {
			select {
			case last = <-states:
			case <-end:
				t.Fatalf("want health %v, last seen %+v", want, last)
			}
			var got []bool
			for _, d := range last.Devices {
				got = append(got, d.Health.State == eflib.Healthy)
			}
			if slices.Equal(got, want) {
				return
			}
		}
	}
	healthy(true, true, true, true)
	for range 2 { // ill, ill for another reason, well, ill: each is a state, none a toggle
		ill := m.Clone()
		apply(t, &ill, "ecc-double-bit 2")
		rig.Show(ill)
		healthy(true, true, false, true)
		apply(t, &ill, "too-hot 2")
		rig.Show(ill)
		rig.Show(m)
		healthy(true, true, true, true)
	}
	without := m.Clone()
	without.Remove(0)
	rig.Show(without)
	healthy(true, true, true)
	rig.Show(m)
	healthy(true, true, true, true)
	select {
	case state := <-states:
		t.Errorf("nothing has changed, and it sent %+v", state)
	case <-time.After(200 * time.Millisecond):
	}
	cancel()
	for range states { // ends when the channel is closed
	}
}

// settle waits until no answer from before can be given any more.
func (s telemetry) settle() { time.Sleep(s.can.Slow) }

func apply(t *testing.T, m *sim.Machine, faults ...string) {
	t.Helper()
	for _, text := range faults {
		list, err := sim.ParseFaults(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := list[0].Apply(m); err != nil {
			t.Fatal(err)
		}
	}
}

func devices(t *testing.T, i eflib.Inventory) []eflib.Device {
	t.Helper()
	list, err := i.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come about in 10 s")
		}
	}
}
