package source

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sysfs"
	"github.com/topscloud/topscloud/topology"
)

// Cards is a back end that asks the cards themselves.
type Cards interface {
	eflib.Inventory
	eflib.Telemetry
}

// Joined is sysfs and a back end that asks the cards, joined by PCI address.
type Joined struct {
	base  *sysfs.Inventory
	cards Cards

	mu   sync.Mutex // guards last
	last map[topology.Address]eflib.Device
}

// Join returns both as one.
func Join(base *sysfs.Inventory, cards Cards) *Joined {
	return &Joined{base: base, cards: cards, last: map[topology.Address]eflib.Device{}}
}

// Host returns what sysfs says of the host.
func (j *Joined) Host(ctx context.Context) (eflib.Host, error) { return j.base.Host(ctx) }

// Devices lists the cards of sysfs with what they say of themselves.
func (j *Joined) Devices(ctx context.Context) ([]eflib.Device, error) {
	devices, err := j.base.Devices(ctx)
	if len(devices) == 0 {
		return devices, err
	}
	said, problem := j.cards.Devices(ctx)
	if eflib.ContextError(ctx) != nil && !errors.Is(eflib.ContextError(ctx), eflib.ErrTimeout) {
		return nil, eflib.ContextError(ctx)
	}
	byAddress := map[topology.Address]eflib.Device{}
	for _, d := range said {
		byAddress[d.PCIAddress] = d
	}
	perCard, only := eflib.DeviceErrors(problem)
	failed := map[string]error{}
	for _, e := range perCard {
		failed[e.Entry] = e
	}
	var errs []error
	if !only {
		errs = append(errs, problem)
	}
	unmatched := false
	j.mu.Lock()
	defer j.mu.Unlock()
	last := map[topology.Address]eflib.Device{}
	settled := map[string]bool{}
	for i := range devices {
		d := &devices[i]
		card, answered := byAddress[d.PCIAddress]
		unmatched = unmatched || !answered
		reason := failed[d.Entry()]
		switch {
		case !answered && !only:
			reason = problem
		case !answered && reason == nil:
			// It may be one of those that did not tell where they are.
			if reason = problem; reason == nil {
				reason = eflib.ErrDeviceLost
				errs = append(errs, &eflib.DeviceError{Entry: d.Entry(), Err: fmt.Errorf("in sysfs, but not known to the driver's library: %w", reason)})
			}
		}
		card.Health = healthOf(card, answered, reason)
		overlay(d, card, j.last[d.PCIAddress], reason)
		if eflib.OwnUUID(d.UUID) {
			last[d.PCIAddress] = *d
		}
		if reason != nil && only && failed[d.Entry()] != nil {
			errs = append(errs, failed[d.Entry()])
		}
		settled[d.Entry()] = d.Model != "" && d.MemoryMiB > 0
	}
	j.last = last
	// What the library says of cards that sysfs could not use is left to sysfs. A card that did not tell
	// where it is matters where it may be one of ours.
	for _, e := range perCard {
		if _, ours := settled[e.Entry]; only && unmatched && !ours {
			errs = append(errs, e)
		}
	}
	return devices, errors.Join(append(unsettled(err, settled), errs...)...)
}

func healthOf(card eflib.Device, answered bool, reason error) eflib.Health {
	if answered {
		return card.Health
	}
	return eflib.UnknownHealth(reason)
}

// overlay puts what a card said over what sysfs knows, or what it said before where it failed now.
func overlay(d *eflib.Device, card, before eflib.Device, reason error) {
	if before.DeviceID != d.DeviceID {
		before = eflib.Device{}
	}
	if reason != nil {
		if card.UUID == "" {
			card.UUID, card.SerialNumber = before.UUID, before.SerialNumber
			d.UUID = ""
		}
		if card.MemoryMiB == 0 {
			card.MemoryMiB = before.MemoryMiB
		}
	}
	d.Health, d.SerialNumber = card.Health, card.SerialNumber
	if card.UUID != "" {
		d.UUID = card.UUID
	}
	if card.MemoryMiB > 0 {
		d.MemoryMiB = card.MemoryMiB
	}
	if d.Model == "" {
		d.Model = card.Model
	}
}

// unsettled returns the errors of sysfs without those about unknown models and memory that the card
// itself settled.
func unsettled(err error, settled map[string]bool) []error {
	list, all := eflib.DeviceErrors(err)
	if !all {
		return []error{err}
	}
	var kept []error
	for _, e := range list {
		unknown := errors.Is(e, eflib.ErrUnknownMemory) || errors.Is(e, eflib.ErrUnknownModel)
		if !unknown || !settled[e.Entry] {
			kept = append(kept, e)
		}
	}
	return kept
}

// Sample asks the card. Whether it and its driver are there is asked of sysfs, which never hangs; so is
// the link, where the card does not tell it.
func (j *Joined) Sample(ctx context.Context, device eflib.Device, want eflib.Field) (eflib.Sample, error) {
	ours, err := j.base.Sample(ctx, device, want&eflib.FieldPCIeLink)
	if err != nil {
		s := eflib.Sample{Minor: device.Minor, Time: ours.Time}
		var inner *eflib.DeviceError
		if errors.As(err, &inner) {
			s.Fail(want, device.Entry(), inner.Err)
		}
		return s, err
	}
	s, err := j.cards.Sample(ctx, device, want)
	if err == nil {
		s.Fill(ours)
	}
	return s, err
}
