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
	token chan struct{}

	mu    sync.Mutex // guards stuck
	stuck bool
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
		return eflib.ContextError(ctx)
	}
	finished, done := false, make(chan struct{}) // finished is guarded by mu
	go func() {
		call()
		l.mu.Lock()
		finished, l.stuck = true, false
		l.mu.Unlock()
		<-l.token
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	// A caller that went away says nothing about the call; one whose time was up does.
	l.mu.Lock()
	l.stuck = !finished && ctx.Err() == context.DeadlineExceeded
	l.mu.Unlock()
	return eflib.ContextError(ctx)
}
