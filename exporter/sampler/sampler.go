package sampler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/exporter/processes"
	"github.com/topscloud/topscloud/topology"
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
	// Processes finds out about the processes of a card; nil where nothing is to be said of them.
	Processes Processes
}

// Processes is the host's processes. processes.Table is one.
type Processes interface {
	// Visible returns nil where the host's processes can be seen, else why not.
	Visible() error
	// Look finds out about processes that a card told of when it was asked, which began at asked.
	Look(list []eflib.Process, asked time.Time) ([]processes.Process, error)
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
	// Lacking are the fields that the card should have told and did not, Implausible how many readings of the sample
	// cannot be true.
	Lacking     eflib.Field
	Implausible int
	// Processes are the card's processes, where card and host told; ProcessesErr says why the host did not.
	Processes    []processes.Process
	ProcessesErr error
	// Joules is the power added up over the looks since the exporter started; Metered says whether there was any.
	Joules  float64
	Metered bool
	// Records are the records that the driver's error log has had, by class, sorted.
	Records []Count
}

// Host is what is known of all cards, sorted by minor and address.
type Host struct {
	Cards []Card
	// Err is what the source said was wrong: some entries, or why no card could be asked.
	Err error
	// Known says whether the source has told of the host at all.
	Known bool
	// ProcessesErr is why the host's processes cannot be seen; nil where they can.
	ProcessesErr error
}

// Sampler keeps the last look at each card.
type Sampler struct {
	o Options

	mu    sync.Mutex // guards the fields below
	known bool
	err   error
	// version changes with all that is known.
	version uint64
	// order are the cards that are there, sorted.
	order   []place
	cards   map[place]*watched
	tallies map[identity]*tally
}

// place is where a card is. A source tells no two cards of one minor, but one that does must not mix them up.
type place struct {
	minor   int
	address topology.Address
}

// identity is which card is in a place.
type identity struct {
	address topology.Address
	uuid    string
}

// watched is a card with the goroutine that asks it.
type watched struct {
	device   eflib.Device
	identity eflib.Identity
	last     Card
	tally    *tally
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
	return &Sampler{o: o, cards: map[place]*watched{}, tallies: map[identity]*tally{}}, nil
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
	s.version++
	s.known, s.err, s.order = true, state.Err, s.order[:0]
	there := map[place]bool{}
	for _, d := range state.Devices {
		at := place{d.Minor, d.PCIAddress}
		if there[at] {
			continue // one card, told twice
		}
		there[at] = true
		s.order = append(s.order, at)
		if w := s.cards[at]; w != nil && same(w.device, d) {
			w.device = d
			s.tallies[identity{d.PCIAddress, d.UUID}] = w.tally // it may have told its uuid only now
			continue
		} else if w != nil {
			w.cancel()
		}
		own, cancel := context.WithCancel(ctx)
		w := &watched{device: d, last: Card{Err: errNotYet}, cancel: cancel, tally: s.tallies[identity{d.PCIAddress, d.UUID}]}
		if w.tally == nil {
			w.tally = &tally{}
			s.tallies[identity{d.PCIAddress, d.UUID}] = w.tally
		}
		s.cards[at] = w
		wg.Go(func() { s.ask(own, w) })
	}
	slices.SortFunc(s.order, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.minor, b.minor), a.address.Compare(b.address))
	})
	for at, w := range s.cards {
		if !there[at] {
			w.cancel()
			delete(s.cards, at)
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
		last := Card{Sample: sample, At: began, Took: time.Since(began), Err: err}
		if err == nil {
			last.Lacking, last.Implausible = sample.Lacking()&s.o.Want, sample.Implausible()
			if list, told := sample.Processes.Value(); told && s.o.Processes != nil {
				last.Processes, last.ProcessesErr = s.o.Processes.Look(list, began)
			}
		}
		s.mu.Lock()
		// A card is taken away under the lock, so what a late look saw of the one that was here is not written down.
		if ctx.Err() != nil {
			s.mu.Unlock()
			return
		}
		s.version++
		w.last = last
		w.tally.take(&sample, began, s.o.MaxAge)
		if id, ok := sample.Identity.Value(); ok {
			w.identity = id
		}
		s.mu.Unlock()
		// The next look is an interval after this one began, a late one at once, and never two at a time.
		timer.Reset(max(0, s.o.Interval-time.Since(began)))
	}
}

// Version changes whenever what is known changed, but for what gets too old.
func (s *Sampler) Version() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Latest returns what is known now. The caller must not change what the samples point to.
func (s *Sampler) Latest() Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := Host{Err: s.err, Known: s.known, Cards: make([]Card, 0, len(s.order)), ProcessesErr: processes.ErrNotTheHosts}
	if s.o.Processes != nil {
		h.ProcessesErr = s.o.Processes.Visible()
	}
	for _, at := range s.order {
		w := s.cards[at]
		c := w.last
		c.Device, c.Identity = w.device, w.identity
		c.Joules, c.Metered, c.Records = w.tally.joules, w.tally.metered, w.tally.counts
		if age := time.Since(c.At); !c.At.IsZero() && age > s.o.MaxAge {
			c.Err = fmt.Errorf("no answer for %s: %w", age.Round(time.Second), eflib.ErrTimeout)
		}
		if c.Err != nil {
			c.Sample = eflib.Sample{Minor: at.minor}
			c.Sample.Fail(s.o.Want, c.Device.Entry(), c.Err)
			c.Processes, c.ProcessesErr, c.Lacking, c.Implausible = nil, nil, c.Sample.Lacking()&s.o.Want, 0
		}
		h.Cards = append(h.Cards, c)
	}
	return h
}
