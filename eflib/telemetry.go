package eflib

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Telemetry reads what a card tells of itself: an exporter asks for all of it, an agent for health.
type Telemetry interface {
	// Sample reads the wanted fields of one card. It returns by the end of ctx, and after a time of
	// the back end's own where ctx has none, whatever the card does. What was read until then is in
	// the sample; the other wanted readings say why they are not, as *DeviceError. The error is about
	// the card as a whole, and then no reading has a value.
	Sample(ctx context.Context, device Device, want Field) (Sample, error)
}

// SampleAll reads the wanted fields of all devices at the same time, each within perCard, and returns
// one sample and one error per device, in order. One stuck card costs the others nothing.
func SampleAll(ctx context.Context, t Telemetry, devices []Device, want Field, perCard time.Duration) ([]Sample, []error) {
	samples, errs := make([]Sample, len(devices)), make([]error, len(devices))
	ctx, cancel := context.WithTimeout(ctx, perCard)
	defer cancel()
	var wg sync.WaitGroup
	for i, d := range devices {
		wg.Go(func() { samples[i], errs[i] = t.Sample(ctx, d, want) })
	}
	wg.Wait()
	return samples, errs
}

// Fail sets all wanted readings that have no value and no reason yet to err.
func (s *Sample) Fail(want Field, entry string, err error) {
	for _, r := range s.readings() {
		if want.Has(r.field) {
			r.fail(&DeviceError{Entry: entry, Reading: r.name, Err: err})
		}
	}
}

// Name gives the reasons in a sample the card and the reading they are about, where they lack them.
func (s *Sample) Name(entry string) {
	for _, r := range s.readings() {
		r.about(entry, r.name)
	}
}

// Empty says whether the sample has no value at all.
func (s *Sample) Empty() bool {
	for _, r := range s.readings() {
		if r.known() {
			return false
		}
	}
	return true
}

// Fields returns the fields of which the sample has a value.
func (s *Sample) Fields() Field {
	var f Field
	for _, r := range s.readings() {
		if r.known() {
			f |= r.field
		}
	}
	return f
}

// Fill takes over from o the readings that s has no value for and o has. A reading that neither has
// keeps the reason of s.
func (s *Sample) Fill(o Sample) {
	theirs := o.readings()
	for i, r := range s.readings() {
		r.fill(theirs[i].ptr)
	}
}

// Take takes over the wanted readings of o that have a value or a reason.
func (s *Sample) Take(o Sample, want Field) {
	theirs := o.readings()
	for i, r := range s.readings() {
		if want.Has(r.field) {
			r.fill(theirs[i].ptr)
		}
	}
}

// Whole returns the reason why a sample has none of the wanted readings, where it is that the card or
// its driver is gone or does not answer; else nil.
func (s *Sample) Whole(want Field) error {
	var first error
	for _, r := range s.readings() {
		if !want.Has(r.field) {
			continue
		}
		err := r.err()
		if err == nil || !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrDeviceLost) && !errors.Is(err, ErrDriverNotLoaded) {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}
