package health_test

import (
	"testing"
	"time"

	"github.com/topscloud/topscloud/deviceplugin/health"
)

func TestSteady(t *testing.T) {
	t.Parallel()
	card := func(usable, faulty bool, since time.Duration, causes ...health.Cause) health.Report {
		c := health.Card{Minor: 1, UUID: "GCU-a", Present: true, Usable: usable, Faulty: faulty}
		for _, cause := range causes {
			c.Findings = append(c.Findings, health.Finding{Cause: cause, Since: start.Add(-since)})
		}
		return health.Report{Cards: []health.Card{c}}
	}
	well := card(true, false, 0)
	tests := map[string]struct {
		before, now health.Report
		want        bool
	}{
		"a card that is well":               {well, well, true},
		"one look without an answer":        {well, card(false, false, time.Second, health.Hang), true},
		"no answer for too long":            {well, card(false, false, 5*time.Second, health.Hang), false},
		"one look that could not be read":   {well, card(false, false, 0, health.Unreadable), true},
		"a proven fault is at once":         {well, card(false, true, 0, health.OverTemperature), false},
		"health that cannot be asked":       {well, card(false, false, 0, health.Unknown), false},
		"a card that was not offered":       {card(false, false, 0, health.Hang), card(false, false, 0, health.Hang), false},
		"a second, weightier reason":        {well, card(false, false, 0, health.Hang, health.DriverNotLoaded), false},
		"a card that was not there before":  {health.Report{}, card(false, false, 0, health.Hang), false},
		"on probation, with nothing to see": {well, card(false, false, 0), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := health.Steady(tt.before, tt.now, start, 5*time.Second).Cards[0].Usable; got != tt.want {
				t.Errorf("offered: %t", got)
			}
		})
	}
}
