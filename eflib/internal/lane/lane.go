// Package lane bounds what calls that may never return can cost: one goroutine a lane.
package lane

import (
	"context"
	"fmt"
	"sync"

	"github.com/topscloud/topscloud/eflib"
)

// Lane lets one call at a time into something that may hang. A call that does not return in time is left behind in
// its goroutine, and until it returns the lane is stuck: others get an error at once instead of
// waiting, and no second goroutine joins the first. So what hangs costs one goroutine, however often it
// is asked.
type Lane struct {
	token chan struct{} // held by the call that is in

	mu sync.Mutex // guards both
	// busy says that a call is in, stuck that it has outlasted somebody's patience.
	busy, stuck bool
}

// New returns a lane that is free.
func New() *Lane { return &Lane{token: make(chan struct{}, 1)} }

// Do runs call and returns nil when it has returned. After an error call may still be running.
func (l *Lane) Do(ctx context.Context, call func()) error {
	if err := eflib.ContextError(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	stuck := l.stuck
	l.mu.Unlock()
	if stuck {
		return fmt.Errorf("%w: an earlier call has not returned", eflib.ErrTimeout)
	}
	select {
	case l.token <- struct{}{}:
	case <-ctx.Done():
		return l.giveUp(ctx)
	}
	l.set(true)
	done := make(chan struct{})
	go func() {
		call()
		l.set(false)
		<-l.token
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return l.giveUp(ctx)
	}
}

func (l *Lane) set(busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy, l.stuck = busy, false
}

// giveUp marks the call that is in as stuck when somebody's time is up, be it that of its own caller or
// of one who waited for it. A caller that goes away for another reason says nothing about the call.
func (l *Lane) giveUp(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stuck = l.busy && (l.stuck || ctx.Err() == context.DeadlineExceeded)
	return eflib.ContextError(ctx)
}
