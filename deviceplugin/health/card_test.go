package health_test

import (
	"errors"
	"testing"
	"time"

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
