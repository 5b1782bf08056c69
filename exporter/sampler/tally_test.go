package sampler_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/exporter/processes"
	"github.com/topscloud/topscloud/exporter/sampler"
	"github.com/topscloud/topscloud/topology"
)

// A look is every 10 s and counts for 20 s. The energy is the area below the powers of looks that follow one another;
// a card that was away for longer than a look counts is credited nothing for that time.
func TestEnergy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		s := start(t, h)
		watts := func(reading eflib.Reading[float64]) {
			h.set(func() { h.more = func(s *eflib.Sample) { s.PowerWatts = reading } })
		}
		joules := func(want float64) {
			t.Helper()
			synctest.Wait()
			if c := s.Latest().Cards[0]; !c.Metered || c.Joules != want {
				t.Errorf("energy %v (metered %v), want %v J", c.Joules, c.Metered, want)
			}
		}
		watts(eflib.Unknown[float64](eflib.ErrNotSupported))
		h.states <- eflib.State{Devices: cards(1)}
		synctest.Wait()
		if s.Latest().Cards[0].Metered {
			t.Error("a card that does not tell its power has an energy")
		}
		watts(eflib.Watts(100))
		time.Sleep(10 * time.Second)
		joules(0)
		watts(eflib.Watts(300))
		time.Sleep(10 * time.Second)
		joules(2000)
		// One look without a power: the next one is 20 s after, no longer than a look counts.
		watts(eflib.Unknown[float64](eflib.ErrTimeout))
		time.Sleep(10 * time.Second)
		joules(2000)
		watts(eflib.Watts(100))
		time.Sleep(10 * time.Second)
		joules(2000 + 4000)
		h.set(func() { h.err = eflib.ErrDriverNotLoaded })
		time.Sleep(time.Hour)
		joules(6000)
		h.set(func() { h.err = nil })
		time.Sleep(10 * time.Second)
		joules(6000)
		time.Sleep(10 * time.Second)
		joules(7000)
		// The card goes and comes back; its energy does not begin anew.
		h.states <- eflib.State{}
		synctest.Wait()
		h.states <- eflib.State{Devices: cards(1)}
		synctest.Wait()
		if c := s.Latest().Cards[0]; c.Joules < 7000 {
			t.Errorf("energy went down to %v J", c.Joules)
		}
	})
}

// Records are counted once each, by class; trimming, clearing or losing the log takes none away.
func TestErrorRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		s := start(t, h)
		step := func(list eflib.Reading[[]eflib.ErrorRecord], want ...uint64) {
			t.Helper()
			h.set(func() { h.more = func(s *eflib.Sample) { s.ErrorRecords = list } })
			time.Sleep(10 * time.Second)
			synctest.Wait()
			var got []uint64
			for i, c := range s.Latest().Cards[0].Records {
				if int(c.Type) != i {
					t.Errorf("class %d stands at place %d", c.Type, i)
				}
				got = append(got, c.Records)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("records by class (-want +got):\n%s", diff)
			}
		}
		log := func(list ...eflib.ErrorRecord) eflib.Reading[[]eflib.ErrorRecord] { return eflib.Known(list) }
		h.states <- eflib.State{Devices: cards(1)}
		unknown := eflib.Unknown[[]eflib.ErrorRecord](eflib.ErrTimeout)
		step(unknown)
		step(log(), 0, 0, 0, 0, 0)
		a := eflib.ErrorRecord{ID: 1, ResetType: 2, Timestamp: 100}
		b := eflib.ErrorRecord{ID: 2, ResetType: 2, Timestamp: 101}
		c := eflib.ErrorRecord{ID: 3, ResetType: 5, Timestamp: 102}
		step(log(a), 0, 0, 1, 0, 0)
		step(log(a, b, c), 0, 0, 2, 0, 0, 1)
		step(log(c), 0, 0, 2, 0, 0, 1)
		step(unknown, 0, 0, 2, 0, 0, 1)
		step(log(a, b, c), 0, 0, 2, 0, 0, 1)
		// The log was cleared and numbers anew.
		step(log(eflib.ErrorRecord{ID: 1, ResetType: 2, Timestamp: 900}), 0, 0, 3, 0, 0, 1)
		h.set(func() { h.err = errors.New("gone") })
		time.Sleep(time.Minute)
		if got := s.Latest().Cards[0].Records; len(got) != 6 {
			t.Errorf("the card does not answer, and its counters are %v", got)
		}
	})
}

// table is a host whose processes are all called alike.
type table struct{ err error }

func (p table) Visible() error { return nil }

func (p table) Look(list []eflib.Process, _ time.Time) ([]processes.Process, error) {
	if p.err != nil {
		return nil, p.err
	}
	var out []processes.Process
	for _, one := range list {
		out = append(out, processes.Process{PID: one.PID, Name: "train", DeviceBytes: one.DeviceBytes})
	}
	return out, nil
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		o       sampler.Options
		visible bool
		want    []processes.Process
		failed  bool
	}{
		"seen":     {sampler.Options{Processes: table{}}, true, []processes.Process{{PID: 7, Name: "train", DeviceBytes: 1 << 20}}, false},
		"unread":   {sampler.Options{Processes: table{errors.New("cannot be read")}}, true, nil, true},
		"not seen": {sampler.Options{}, false, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHost()
				h.more = func(s *eflib.Sample) {
					s.Processes = eflib.Known([]eflib.Process{{PID: 7, DeviceBytes: 1 << 20}})
				}
				tt.o.Source = h
				s := startWith(t, tt.o)
				h.states <- eflib.State{Devices: cards(1)}
				synctest.Wait()
				got := s.Latest()
				if diff := cmp.Diff(tt.want, got.Cards[0].Processes); diff != "" {
					t.Errorf("processes (-want +got):\n%s", diff)
				}
				if (got.ProcessesErr == nil) != tt.visible || (got.Cards[0].ProcessesErr != nil) != tt.failed {
					t.Errorf("host: %v, card: %v", got.ProcessesErr, got.Cards[0].ProcessesErr)
				}
				h.set(func() { h.err = eflib.ErrDriverNotLoaded })
				time.Sleep(11 * time.Second)
				if c := s.Latest().Cards[0]; c.Processes != nil || c.Lacking != eflib.AllFields {
					t.Errorf("a card that does not answer has processes %v, lacks %b", c.Processes, c.Lacking)
				}
			})
		})
	}
}

// No source should tell two cards of one minor. They are two cards all the same, and the same card twice is one.
func TestTwoCardsOfOneMinor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		s := start(t, h)
		one := eflib.Device{Minor: 2, UUID: "GCU-1", PCIAddress: topology.Address{Bus: 9}}
		two := eflib.Device{Minor: 2, UUID: "GCU-2", PCIAddress: topology.Address{Bus: 3}}
		h.states <- eflib.State{Devices: []eflib.Device{one, two, one}}
		want(t, s, "20 20")
		got := s.Latest().Cards
		if got[0].Device.UUID != "GCU-2" || got[1].Device.UUID != "GCU-1" {
			t.Errorf("cards %s and %s, want those of bus 3 and 9", got[0].Device.UUID, got[1].Device.UUID)
		}
	})
}
