package health

import (
	"fmt"
	"time"

	"github.com/topscloud/topscloud/eflib"
)

// Defaults of Thresholds. The vendor publishes no limits; 95 °C is below what any card of its kind is
// built for and above what one with working fans reaches, and ten degrees tell cooled down from wavering.
const (
	DefaultHotCelsius  = 95
	DefaultCoolCelsius = 85
	DefaultProbation   = time.Minute
	// DefaultHangLooks are three: one look may fall into a burst of load, two into a long one.
	DefaultHangLooks = 3
)

// Thresholds say when something is wrong. Fields that are 0 have their defaults.
type Thresholds struct {
	// HotCelsius is where any sensor of a card makes it too hot, CoolCelsius what all have to be below
	// for it to be well again.
	HotCelsius, CoolCelsius float64
	// Probation is how long a card that was at fault has to be well before it gets new holders, the
	// first time. It is also how long a step is remembered: an ECC counter that rose, a new error record.
	Probation time.Duration
	// HangLooks is after how many looks in a row without an answer a hang is proven. Only Updates with
	// samples count.
	HangLooks int
}

// Options of a Tracker.
type Options struct {
	Thresholds Thresholds
	// Off says that health checks are switched off: nothing is asked of the cards, samples are not
	// looked at, and health that is not known counts as good. What is proven by the list of cards itself
	// still counts: a card that is gone or that the driver calls unhealthy, a driver that is not loaded.
	Off bool
}

// A card that fails again within calmFactor probations waits twice as long, at most maxFactor times as
// long as the first time.
const (
	maxFactor  = 16
	calmFactor = 64
)

// maxProbation keeps calmFactor times it far from an overflow.
const maxProbation = 24 * time.Hour

// withDefaults returns the thresholds with defaults, or what is wrong with them.
func (t Thresholds) withDefaults() (Thresholds, error) {
	if t.HotCelsius == 0 {
		t.HotCelsius = DefaultHotCelsius
	}
	if t.CoolCelsius == 0 {
		t.CoolCelsius = DefaultCoolCelsius
	}
	if t.Probation == 0 {
		t.Probation = DefaultProbation
	}
	if t.HangLooks == 0 {
		t.HangLooks = DefaultHangLooks
	}
	switch {
	case !(t.CoolCelsius > 0 && t.CoolCelsius < t.HotCelsius && t.HotCelsius <= 200): // so that NaN is refused too
		return t, fmt.Errorf("too hot from %v °C on and cool below %v °C: want 0 < cool < hot <= 200", t.HotCelsius, t.CoolCelsius)
	case t.Probation < 0 || t.Probation > maxProbation:
		return t, fmt.Errorf("probation %v: want more than 0, at most %v", t.Probation, maxProbation)
	case t.HangLooks < 1:
		return t, fmt.Errorf("a hang proven after %d looks: want at least 1", t.HangLooks)
	}
	return t, nil
}

// Fields returns what to sample: nothing when checks are off.
func (t *Tracker) Fields() eflib.Field {
	if t.off {
		return 0
	}
	return eflib.FieldHealth | eflib.FieldECC | eflib.FieldRMA | eflib.FieldTemperature |
		eflib.FieldPCIeLink | eflib.FieldErrorRecords
}
