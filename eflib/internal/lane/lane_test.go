package lane_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/internal/lane"
)

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestStuckUntilTheCallIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, back := lane.New(), make(chan struct{})
		// The first caller goes away, which marks nothing; the second waits out its time, which does.
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if err := l.Do(ctx, func() { <-back }); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		start := time.Now()
		if err := l.Do(within(t, time.Minute), func() { t.Error("two calls are in") }); !errors.Is(err, eflib.ErrTimeout) || time.Since(start) != time.Minute {
			t.Errorf("waited: %v after %v", err, time.Since(start))
		}
		start = time.Now()
		for range 1000 {
			if err := l.Do(within(t, time.Minute), func() { t.Error("two calls are in") }); !errors.Is(err, eflib.ErrTimeout) {
				t.Errorf("stuck: %v", err)
			}
		}
		if time.Since(start) != 0 {
			t.Errorf("a stuck lane was waited for, %v", time.Since(start))
		}
		close(back)
		synctest.Wait()
		ran := false
		if err := l.Do(t.Context(), func() { ran = true }); err != nil || !ran {
			t.Errorf("the call is back: %v, ran %t", err, ran)
		}
	})
}

func TestOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lane.New()
		in, done := 0, 0
		for range 10 {
			go func() {
				_ = l.Do(within(t, time.Minute), func() {
					if in++; in != 1 {
						t.Error("two calls are in")
					}
					time.Sleep(time.Second)
					in--
					done++
				})
			}()
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if done != 10 {
			t.Errorf("%d of 10 calls were made", done)
		}
	})
}
