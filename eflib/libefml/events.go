package libefml

import (
	"context"
	"errors"
	"time"

	"github.com/topscloud/topscloud/eflib"
)

// Event is something that the driver told. It is a reason to look at the cards, not a state.
type Event struct {
	ID      uint32
	Type    EventType
	Message string
}

// EventType is the kind of an event, by the driver's number.
type EventType uint32

// The known kinds.
const (
	EventUnknown     EventType = 0
	EventSuspend     EventType = 3
	EventResetStart  EventType = 10
	EventResetFinish EventType = 11
	EventError       EventType = 20
)

const (
	// eventWait is how long the library waits for one event. It also bounds how long Close and a new
	// start wait for the call to come back.
	eventWait = 500 * time.Millisecond
	// eventPause is the time between two tries after a failure.
	eventPause = 5 * time.Second
)

// Events calls tell for each event until ctx ends. It returns nil where the driver has no events: then
// only asking again shows changes. Failures are tried again.
func (l *Library) Events(ctx context.Context, tell func(Event)) error {
	wait := uint32(min(eventWait, l.timeout/2) / time.Millisecond)
	for {
		e, err := ask[event](ctx, l, l.events, "EfmlGetEvent", wait)
		var code *CodeError
		pause := eventPause
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, eflib.ErrNotSupported), errors.Is(err, ErrClosed):
			return nil
		case err == nil:
			tell(Event{ID: e.ID, Type: EventType(e.Type), Message: clean(e.Message[:])})
			continue
		case errors.As(err, &code) && errors.Is(err, eflib.ErrTimeout):
			pause = 50 * time.Millisecond // no event; a driver may say so without having waited
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
