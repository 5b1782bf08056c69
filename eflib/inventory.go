package eflib

import (
	"context"
	"errors"
	"fmt"
)

// Inventory lists the cards of a host.
type Inventory interface {
	// Devices returns the cards, sorted by minor. Devices and error may come together: see the package
	// comment. The caller owns the result.
	Devices(ctx context.Context) ([]Device, error)
}

var (
	// ErrDriverNotLoaded means that the kernel driver is not there, so no card can be used or seen.
	ErrDriverNotLoaded = errors.New("enflame driver is not loaded")
	// ErrNotSupported means that the host or the back end has no way to tell.
	ErrNotSupported = errors.New("not supported")
	// ErrUnknownModel is the error of a card whose PCI device id is not in the table of models. The
	// card itself is returned, without model and memory.
	ErrUnknownModel = errors.New("unknown model")
	// ErrUnknownMemory is the error of a card of a known model whose memory is not known. The card
	// itself is returned, with memory 0.
	ErrUnknownMemory = errors.New("memory of this model is not known")
	// ErrDuplicateMinor is the error of each card of several that claim one minor.
	ErrDuplicateMinor = errors.New("minor is claimed by more than one card")
	// ErrNotBound is the error of a card that no driver has taken.
	ErrNotBound = errors.New("no driver is bound to the card")
)

// DeviceError is what is wrong with one entry of an inventory.
type DeviceError struct {
	// Entry names the entry: a PCI address, or a path where there is no address.
	Entry string
	Err   error
}

// Error names the entry and what is wrong.
func (e *DeviceError) Error() string { return fmt.Sprintf("device %s: %v", e.Entry, e.Err) }

// Unwrap returns what is wrong.
func (e *DeviceError) Unwrap() error { return e.Err }

// DeviceErrors returns the errors about single entries in err, in order, and whether that is all err
// says. If it is, the devices beside err are all the good ones.
func DeviceErrors(err error) (list []*DeviceError, all bool) {
	switch e := err.(type) {
	case nil:
		return nil, true
	case *DeviceError:
		return []*DeviceError{e}, true
	case interface{ Unwrap() []error }:
		all = true
		for _, part := range e.Unwrap() {
			some, only := DeviceErrors(part)
			list, all = append(list, some...), all && only
		}
		return list, all
	}
	if inner := errors.Unwrap(err); inner != nil {
		return DeviceErrors(inner)
	}
	return nil, false
}
