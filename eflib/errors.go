package eflib

import (
	"context"
	"errors"
	"fmt"
)

var (
	// ErrDriverNotLoaded means that the kernel driver is not there, so no card can be used or seen.
	ErrDriverNotLoaded = errors.New("enflame driver is not loaded")
	// ErrNotSupported means that the host, the card or the back end has no way to tell.
	ErrNotSupported = errors.New("not supported")
	// ErrDeviceLost means that the driver or the host no longer has the card.
	ErrDeviceLost = errors.New("card is lost")
	// ErrTimeout means that no answer came in time. The card may be stuck, or only slow.
	ErrTimeout = errors.New("no answer in time")
	// ErrImplausible means that an answer came and cannot be true, such as 4294967295 %.
	ErrImplausible = errors.New("implausible value")
	// ErrNotRead is the error of a reading that nobody asked for.
	ErrNotRead = errors.New("not read")
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

// DeviceError is what is wrong with one card, or with one reading of it.
type DeviceError struct {
	// Entry names the card: a PCI address, or a path where there is no address.
	Entry string
	// Reading names what was read; empty where it is about the card as a whole.
	Reading string
	Err     error
}

// Error names the card, the reading and what is wrong.
func (e *DeviceError) Error() string {
	if e.Reading != "" {
		return fmt.Sprintf("device %s: %s: %v", e.Entry, e.Reading, e.Err)
	}
	return fmt.Sprintf("device %s: %v", e.Entry, e.Err)
}

// Unwrap returns what is wrong.
func (e *DeviceError) Unwrap() error { return e.Err }

// DeviceErrors returns the errors about single cards in err, in order, and whether that is all err
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

// ContextError returns why ctx ended: ErrTimeout where its time was up, else its cause; nil while it
// lasts. Back ends use it, so that callers need not tell a back end's deadline from their own.
func ContextError(ctx context.Context) error {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return context.Cause(ctx)
}
