package eflib_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/eflib"
)

func TestReading(t *testing.T) {
	t.Parallel()
	var zero eflib.Reading[int]
	if v, err := zero.Get(); v != 0 || !errors.Is(err, eflib.ErrNotRead) {
		t.Errorf("the zero reading: %v, %v", v, err)
	}
	if _, known := zero.Value(); known {
		t.Error("the zero reading has a value")
	}
	if v, err := eflib.Known(0).Get(); v != 0 || err != nil || eflib.Known(0).Equal(zero) {
		t.Errorf("a known 0: %v, %v", v, err)
	}
	if r := eflib.Unknown[int](nil); r.Err() == nil || !r.Equal(zero) {
		t.Errorf("unknown for no reason: %v", r)
	}
}

func FuzzPlausible(f *testing.F) {
	for _, v := range []float64{0, 100, 100.01, -1, math.NaN(), math.Inf(1), math.MaxUint32} {
		f.Add(v, uint64(v), uint64(math.MaxUint32))
	}
	f.Fuzz(func(t *testing.T, v float64, a, b uint64) {
		if p, ok := eflib.Percent(v).Value(); ok && !(p >= 0 && p <= 100) {
			t.Errorf("percent %v", p)
		}
		if m, ok := eflib.MemoryOf(a, b).Value(); ok && (m.UsedBytes < 0 || m.UsedBytes > m.TotalBytes || m.TotalBytes < 1<<20) {
			t.Errorf("memory %+v", m)
		}
		l, ok := eflib.PCIeLinkOf(uint32(a), uint32(b), uint32(a>>32), uint32(b>>32)).Value()
		if ok && (l.Width < 1 || l.Width > l.MaxWidth || l.Generation < 1 || l.Generation > l.MaxGeneration) {
			t.Errorf("link %+v", l)
		}
	})
}

func TestSampleKeepsReasonsApart(t *testing.T) {
	t.Parallel()
	s := eflib.Sample{Usage: eflib.Percent(5), ECC: eflib.Unknown[eflib.ECC](eflib.ErrNotSupported)}
	s.Name("card")
	s.Fail(eflib.FieldUsage|eflib.FieldECC|eflib.FieldMemory, "card", eflib.ErrTimeout)
	if s.Usage.Err() != nil || !errors.Is(s.ECC.Err(), eflib.ErrNotSupported) || s.Memory.Err().Error() != "device card: memory: no answer in time" || !errors.Is(s.RMA.Err(), eflib.ErrNotRead) {
		t.Errorf("usage %v, ecc %v, memory %v, rma %v", s.Usage, s.ECC, s.Memory, s.RMA)
	}
	s.Fill(eflib.Sample{Usage: eflib.Percent(9), Memory: eflib.MemoryOf(1<<30, 0), RMA: eflib.RMAOf(eflib.RMA{})})
	if u, _ := s.Usage.Value(); u != 5 || s.Memory.Err() != nil || s.RMA.Err() != nil {
		t.Errorf("filled: usage %v, memory %v, rma %v", s.Usage, s.Memory, s.RMA)
	}
	n := 0
	for range s.All() {
		n++
	}
	if n != 24 || eflib.AllFields != 1<<20-1 {
		t.Errorf("%d readings, fields %b", n, eflib.AllFields)
	}
}

func TestContextError(t *testing.T) {
	t.Parallel()
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := eflib.ContextError(ctx); err != nil {
		t.Error(err)
	}
	cancel(why)
	if err := eflib.ContextError(ctx); !errors.Is(err, why) || errors.Is(err, eflib.ErrTimeout) {
		t.Errorf("cancelled: %v", err)
	}
	late, cancelLate := context.WithTimeout(t.Context(), -1)
	defer cancelLate()
	if err := eflib.ContextError(late); !errors.Is(err, eflib.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("late: %v", err)
	}
}

// host is an inventory that a test changes.
type host struct {
	mu      sync.Mutex // guards all below
	devices []eflib.Device
	err     error
	calls   int
	block   bool
}

func (h *host) Devices(ctx context.Context) ([]eflib.Device, error) {
	h.mu.Lock()
	h.calls++
	devices, err, block := append([]eflib.Device(nil), h.devices...), h.err, h.block
	h.mu.Unlock()
	if block {
		<-ctx.Done()
		return nil, eflib.ContextError(ctx)
	}
	return devices, err
}

func (h *host) set(err error, health ...eflib.HealthState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.devices, h.err = nil, err
	for i, state := range health {
		h.devices = append(h.devices, eflib.Device{Minor: i, Health: eflib.Health{State: state}})
	}
}

func (h *host) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

func text(s eflib.State) string {
	out := fmt.Sprint(s.Err, ":")
	for _, d := range s.Devices {
		out += fmt.Sprint(" ", d.Minor, "=", d.Health.Problem())
	}
	return out
}

func TestPoller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const good, bad = eflib.Healthy, eflib.Unhealthy
		h, nudge := &host{}, make(chan struct{}, 1)
		h.set(nil, good, good)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		states := eflib.NewPoller(h, time.Second, nudge).Watch(ctx)
		var got []string
		look := func() {
			synctest.Wait()
			select {
			case s := <-states:
				got = append(got, text(s))
			default:
				got = append(got, "nothing")
			}
		}
		step := func() { time.Sleep(time.Second); look() }
		look()
		step() // no change
		h.set(nil, good, bad)
		step()
		h.set(nil, good, bad) // the same again is no toggle
		step()
		h.set(nil, good, good)
		step()
		h.set(eflib.ErrDriverNotLoaded) // all is unknown, nothing is forgotten
		step()
		h.set(nil, good)
		step()
		h.set(nil) // a host without cards
		step()
		h.set(nil, bad)
		nudge <- struct{}{} // at once
		look()
		// A receiver that is away gets the last state, not the first it missed.
		for _, state := range []eflib.HealthState{good, bad, good} {
			h.set(nil, state)
			time.Sleep(time.Second)
		}
		look()
		look()
		// A back end that blocks costs an interval, then it is unknown, then it is well again.
		h.mu.Lock()
		h.block = true
		h.mu.Unlock()
		time.Sleep(1500 * time.Millisecond)
		step()
		h.mu.Lock()
		h.block = false
		h.mu.Unlock()
		time.Sleep(time.Second)
		step()
		close(nudge)
		calls := h.count()
		step()
		if now := h.count(); now > calls+2 {
			t.Errorf("a closed nudge made it look %d times in a second", now-calls)
		}
		cancel()
		synctest.Wait()
		if _, open := <-states; open {
			t.Error("the channel is open after the context has ended")
		}
		want := []string{
			"<nil>: 0= 1=", "nothing", "<nil>: 0= 1=unhealthy", "nothing", "<nil>: 0= 1=",
			"enflame driver is not loaded: 0=driver not loaded 1=driver not loaded", "<nil>: 0=", "<nil>:",
			"<nil>: 0=unhealthy", "<nil>: 0=", "nothing",
			"no answer in time: context deadline exceeded: 0=does not answer", "<nil>: 0=", "nothing",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestLacking(t *testing.T) {
	t.Parallel()
	whole := func() eflib.Sample {
		var s eflib.Sample
		s.Fail(eflib.AllFields, "card", eflib.ErrNotSupported)
		return s
	}
	s := whole()
	if got := s.Lacking(); got != 0 {
		t.Errorf("nothing is supported: %b", got)
	}
	s.Usage, s.Memory = eflib.Unknown[float64](eflib.ErrTimeout), eflib.MemoryOf(1<<30, 2<<30)
	if got, want := s.Lacking(), eflib.FieldUsage|eflib.FieldMemory; got != want {
		t.Errorf("lacks %b, want %b", got, want)
	}
	if n := s.Implausible(); n != 1 {
		t.Errorf("%d implausible readings, want 1: the time-out is none", n)
	}
	bad := eflib.Percent(101)
	s = whole()
	s.ClusterUsage = eflib.Known([]eflib.Reading[float64]{eflib.Percent(1), bad})
	s.PGUsage = eflib.Known([]eflib.Reading[float64]{eflib.Unknown[float64](eflib.ErrNotSupported)})
	s.Ports = eflib.Known([]eflib.Port{{Link: eflib.Unknown[eflib.Link](eflib.ErrImplausible)}})
	s.VirtualDevices = eflib.Known([]eflib.VirtualDevice{{Memory: eflib.MemoryOf(1<<30, 0), Usage: bad}})
	if got, want := s.Lacking(), eflib.FieldClusterUsage|eflib.FieldPorts|eflib.FieldVirtualDevices; got != want {
		t.Errorf("parts: lacks %b, want %b", got, want)
	}
}
