package eflib

import "context"

// Inventory lists the cards of a host.
type Inventory interface {
	// Devices returns the cards, sorted by minor. Devices and error may come together: see the package
	// comment. The caller owns the result.
	Devices(ctx context.Context) ([]Device, error)
}
