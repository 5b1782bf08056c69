package sampler_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/exporter/sampler"
)

// host is a source whose cards answer as they are told to.
type host struct {
	states chan eflib.State

	mu    sync.Mutex // guards all below
	stuck map[int]bool
	err   error
	asked map[int]int
	now   map[int]int // looks under way
	most  int
	more  func(*eflib.Sample) // what a card tells besides; nil is nothing
}

func newHost() *host {
	return &host{states: make(chan eflib.State, 1), stuck: map[int]bool{}, asked: map[int]int{}, now: map[int]int{}}
}

func cards(n int) (out []eflib.Device) {
	for i := range n {
		out = append(out, eflib.Device{Minor: i, UUID: fmt.Sprint("GCU-", i)})
	}
	return out
}

func (h *host) Watch(ctx context.Context) <-chan eflib.State {
	out := make(chan eflib.State)
	go func() {
		defer close(out)
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-h.states:
				select {
				case out <- s:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}

func (h *host) Sample(ctx context.Context, d eflib.Device, _ eflib.Field) (eflib.Sample, error) {
	h.mu.Lock()
	h.asked[d.Minor]++
	h.now[d.Minor]++
	h.most = max(h.most, h.now[d.Minor])
	stuck, err, more := h.stuck[d.Minor], h.err, h.more
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.now[d.Minor]--
		h.mu.Unlock()
	}()
	if stuck {
		<-ctx.Done()
		return eflib.Sample{Minor: d.Minor}, eflib.ContextError(ctx)
	}
	if err != nil {
		return eflib.Sample{Minor: d.Minor}, err
	}
	s := eflib.Sample{Minor: d.Minor, Usage: eflib.Known(float64(10 * d.Minor))}
	if more != nil {
		more(&s)
	}
	return s, nil
}

func (h *host) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

func start(t *testing.T, h *host) *sampler.Sampler {
	t.Helper()
	return startWith(t, sampler.Options{Source: h})
}

func startWith(t *testing.T, o sampler.Options) *sampler.Sampler {
	t.Helper()
	s, err := sampler.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return s
}

// tells is each card's usage, or what is wrong with it.
func tells(s *sampler.Sampler) string {
	var out []string
	for _, c := range s.Latest().Cards {
		switch v, known := c.Sample.Usage.Value(); {
		case known && c.Err == nil:
			out = append(out, fmt.Sprint(v))
		case errors.Is(c.Err, eflib.ErrTimeout):
			out = append(out, "timeout")
		case errors.Is(c.Err, eflib.ErrDriverNotLoaded):
			out = append(out, "driver")
		default:
			out = append(out, "-")
		}
	}
	return strings.Join(out, " ")
}

func want(t *testing.T, s *sampler.Sampler, text string) {
	t.Helper()
	synctest.Wait()
	if got := tells(s); got != text {
		t.Errorf("cards tell %q, want %q", got, text)
	}
}

// Case 42: the driver goes for two minutes, then a card's reading never ends. Old values are not told, the other
// cards go on, and nothing piles up.
func TestNoOldValues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		s := start(t, h)
		synctest.Wait()
		if s.Latest().Known {
			t.Error("a host is known before the source told of it")
		}
		h.states <- eflib.State{Devices: cards(4)}
		want(t, s, "0 10 20 30")

		h.set(func() { h.err = eflib.ErrDriverNotLoaded })
		time.Sleep(11 * time.Second)
		want(t, s, "driver driver driver driver")
		time.Sleep(2 * time.Minute)
		h.set(func() { h.err = nil })
		time.Sleep(11 * time.Second)
		want(t, s, "0 10 20 30")

		h.set(func() { h.stuck[3] = true })
		time.Sleep(16 * time.Second)
		want(t, s, "0 10 20 timeout")
		before := runtime.NumGoroutine()
		time.Sleep(20 * time.Minute)
		want(t, s, "0 10 20 timeout")
		if after := runtime.NumGoroutine(); after > before {
			t.Errorf("%d goroutines, %d before twenty minutes of a stuck card", after, before)
		}
		h.set(func() {
			if h.most != 1 {
				t.Errorf("a card was asked %d times at once, want once", h.most)
			}
			h.stuck[3] = false
		})
		time.Sleep(16 * time.Second)
		want(t, s, "0 10 20 30")
	})
}

// A source that ignores the deadline is told as not answering all the same.
func TestMaxAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &deaf{host: newHost(), release: make(chan struct{})}
		s, err := sampler.New(sampler.Options{Source: h})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.Run(ctx)
		}()
		h.states <- eflib.State{Devices: cards(2)}
		want(t, s, "0 10")
		h.set(func() { h.stuck[1] = true })
		time.Sleep(25 * time.Second)
		want(t, s, "0 timeout")
		close(h.release)
		cancel()
		<-done
	})
}

// deaf is a host whose stuck cards do not look at the deadline.
type deaf struct {
	*host
	release chan struct{}
}

func (d *deaf) Sample(ctx context.Context, device eflib.Device, want eflib.Field) (eflib.Sample, error) {
	d.mu.Lock()
	stuck := d.stuck[device.Minor]
	d.mu.Unlock()
	if stuck {
		<-d.release
	}
	return d.host.Sample(ctx, device, want)
}

// Cards come, go and are exchanged; what one told is never told of another.
func TestCardsChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		s := start(t, h)
		h.states <- eflib.State{Devices: cards(2)}
		want(t, s, "0 10")
		h.states <- eflib.State{Devices: cards(1), Err: errors.New("an entry is odd")}
		want(t, s, "0")
		if err := s.Latest().Err; err == nil {
			t.Error("what is wrong with the host is not told")
		}
		h.set(func() { h.stuck[1] = true })
		other := cards(2)
		other[1].UUID = "GCU-other"
		h.states <- eflib.State{Devices: other}
		want(t, s, "0 -")
		h.states <- eflib.State{}
		want(t, s, "")
		asked := 0
		h.set(func() { asked = h.asked[0] })
		time.Sleep(time.Minute)
		h.set(func() {
			if h.asked[0] != asked {
				t.Error("a card that is gone is asked")
			}
		})
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, o := range []sampler.Options{{}, {Source: newHost(), Interval: -1}} {
		if _, err := sampler.New(o); err == nil {
			t.Errorf("%+v: want an error", o)
		}
	}
}
