package sampler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/topscloud/topscloud/eflib"
)

// Source is a host. source.Source is one.
type Source interface {
	eflib.Watcher
	eflib.Telemetry
}

// Options of a Sampler. Source is required.
type Options struct {
	Source Source
	// Interval is the time from one look at a card to the next, 10 s when 0.
	Interval time.Duration
	// Deadline bounds one look, 5 s when 0.
	Deadline time.Duration
	// MaxAge is how old a look may be to be told: the interval and two deadlines when 0.
	MaxAge time.Duration
	// Want is what is asked; 0 is everything.
	Want eflib.Field
}

// Card is what is known of a card.
type Card struct {
	Device eflib.Device
	// Identity is what the card said of itself when it last did; it holds while the card does not answer.
	Identity eflib.Identity
	// Sample is the last look. It has no value where Err is set.
	Sample eflib.Sample
	// At is when that look began, Took how long it took.
	At   time.Time
	Took time.Duration
	// Err says why the card as a whole told nothing.
	Err error
}

// Host is what is known of all cards, sorted by minor.
type Host struct {
	Cards []Card
	// Err is what the source said was wrong: some entries, or why no card could be asked.
	Err error
	// Known says whether the source has told of the host at all.
	Known bool
}

// Sampler keeps the last look at each card.
type Sampler struct {
	o Options

	mu    sync.Mutex // guards the fields below
	known bool
	err   error
	// order are the minors of the cards that are there.
	order []int
	cards map[int]*watched
}

// watched is a card with the goroutine that asks it.
type watched struct {
	device   eflib.Device
	identity eflib.Identity
	last     Card
	cancel   context.CancelFunc
}

var errNotYet = errors.New("not asked yet")

// New returns a sampler that knows nothing yet.
func New(o Options) (*Sampler, error) {
	switch {
	case o.Source == nil:
		return nil, errors.New("sampler: want a source")
	case o.Interval < 0 || o.Deadline < 0 || o.MaxAge < 0:
		return nil, fmt.Errorf("sampler: interval %s, deadline %s, age %s: want 0 or more", o.Interval, o.Deadline, o.MaxAge)
	}
	if o.Interval == 0 {
		o.Interval = 10 * time.Second
	}
	if o.Deadline == 0 {
		o.Deadline = 5 * time.Second
	}
	if o.MaxAge == 0 {
		o.MaxAge = o.Interval + 2*o.Deadline
	}
	if o.Want == 0 {
		o.Want = eflib.AllFields
	}
	return &Sampler{o: o, cards: map[int]*watched{}}, nil
}

// Run samples until ctx ends.
func (s *Sampler) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for state := range s.o.Source.Watch(ctx) {
		s.take(ctx, &wg, state)
	}
}

// take makes the cards of a state those that are asked.
func (s *Sampler) take(ctx context.Context, wg *sync.WaitGroup, state eflib.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.err, s.order = true, state.Err, s.order[:0]
	there := map[int]bool{}
	for _, d := range state.Devices {
		there[d.Minor] = true
		s.order = append(s.order, d.Minor)
		if w := s.cards[d.Minor]; w != nil && same(w.device, d) {
			w.device = d
			continue
		} else if w != nil {
			w.cancel()
		}
		own, cancel := context.WithCancel(ctx)
		w := &watched{device: d, last: Card{Err: errNotYet}, cancel: cancel}
		s.cards[d.Minor] = w
		wg.Go(func() { s.ask(own, w) })
	}
	for minor, w := range s.cards {
		if !there[minor] {
			w.cancel()
			delete(s.cards, minor)
		}
	}
}

// same says whether what was read of a card may be told of the other. A card has no uuid until it has told it.
func same(a, b eflib.Device) bool {
	return a.PCIAddress == b.PCIAddress && (a.UUID == b.UUID || a.UUID == "")
}

// ask looks at one card until ctx ends.
func (s *Sampler) ask(ctx context.Context, w *watched) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		s.mu.Lock()
		device := w.device
		s.mu.Unlock()
		began := time.Now()
		look, cancel := context.WithTimeout(ctx, s.o.Deadline)
		sample, err := s.o.Source.Sample(look, device, s.o.Want)
		cancel()
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		w.last = Card{Sample: sample, At: began, Took: time.Since(began), Err: err}
		if id, ok := sample.Identity.Value(); ok {
			w.identity = id
		}
		s.mu.Unlock()
		// The next look is an interval after this one began, a late one at once, and never two at a time.
		timer.Reset(max(0, s.o.Interval-time.Since(began)))
	}
}

// Latest returns what is known now. The caller must not change what the samples point to.
func (s *Sampler) Latest() Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := Host{Err: s.err, Known: s.known, Cards: make([]Card, 0, len(s.order))}
	for _, minor := range s.order {
		w := s.cards[minor]
		c := w.last
		c.Device, c.Identity = w.device, w.identity
		if age := time.Since(c.At); !c.At.IsZero() && age > s.o.MaxAge {
			c.Err = fmt.Errorf("no answer for %s: %w", age.Round(time.Second), eflib.ErrTimeout)
		}
		if c.Err != nil {
			c.Sample = eflib.Sample{Minor: minor}
			c.Sample.Fail(s.o.Want, c.Device.Entry(), c.Err)
		}
		h.Cards = append(h.Cards, c)
	}
	return h
}
