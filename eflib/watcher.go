package eflib

import "context"

// Watcher tells of cards that come, go, fall ill and recover.
type Watcher interface {
	// Watch sends the state of the host at once and again whenever it has changed, until ctx ends;
	// then it closes the channel. It sends states, not events: each is complete, a state that a slow
	// receiver has not taken is replaced by the next, and none is sent when nothing has changed. So
	// the last state received is the last one seen, whatever was missed.
	Watch(ctx context.Context) <-chan State
}

// State is a host as last seen.
type State struct {
	// Devices are the cards, sorted by minor. A card that was seen before and cannot be asked now is
	// here with health unknown and the cause; a card that is gone is not.
	Devices []Device
	// Err is what was wrong: as beside Inventory.Devices, or the reason why no card could be asked.
	Err error
}
