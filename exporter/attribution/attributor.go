package attribution

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
)

// Books is the node agent. nodebook.Client is one.
type Books interface {
	// Watch calls got with the book, at once and whenever it changed, until ctx or the agent ends. It returns why.
	Watch(ctx context.Context, got func(*nodebook.Book)) error
}

// Kubelet lists what kubelet gave to containers. kubelet.PodResources is one.
type Kubelet interface {
	// List returns an answer to a question asked at since or later, which must not be changed.
	List(ctx context.Context, since time.Time) ([]*podresourcesapi.PodResources, error)
}

// Options of an Attributor. Books, Kubelet and Domain are required.
type Options struct {
	Books   Books
	Kubelet Kubelet
	// Domain is that of our resources: enflame.com.
	Domain string
	// Refresh is how often kubelet is asked while nothing changes, 10 s when 0.
	Refresh time.Duration
	// MaxAge is how long an answer counts after the last one that succeeded, 15 s when 0.
	MaxAge time.Duration
	// Failed is called for each failure, with what did: "agent" or "kubelet". It may be nil.
	Failed func(what string)
	Logger *slog.Logger
}

// What Failed is called with.
const (
	AgentFailed   = "agent"
	KubeletFailed = "kubelet"
)

const (
	// again is how long is waited before the agent is watched, or kubelet asked, again after it failed.
	again = time.Second
	// listTimeout bounds one question to kubelet.
	listTimeout = 5 * time.Second
)

// ErrStarting is why a snapshot lacks a part that was not asked for yet.
var ErrStarting = errors.New("not asked yet")

// Attributor keeps a snapshot of who holds what.
type Attributor struct {
	o       Options
	changed chan struct{}
	latest  atomic.Pointer[Snapshot]

	mu       sync.Mutex // guards the fields below
	book     *nodebook.Book
	agentErr error
	lostAt   time.Time // when the agent was lost; zero while it is there
}

// New returns an attributor that knows nothing yet.
func New(o Options) (*Attributor, error) {
	if o.Books == nil || o.Kubelet == nil || o.Domain == "" {
		return nil, errors.New("attribution: want the agent, kubelet and the domain of our resources")
	}
	if o.Refresh == 0 {
		o.Refresh = 10 * time.Second
	}
	if o.MaxAge == 0 {
		o.MaxAge = 15 * time.Second
	}
	if o.Failed == nil {
		o.Failed = func(string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	a := &Attributor{o: o, changed: make(chan struct{}, 1), agentErr: ErrStarting}
	a.latest.Store(&Snapshot{Agent: ErrStarting, Kubelet: ErrStarting})
	return a, nil
}

// Latest returns the latest snapshot.
func (a *Attributor) Latest() *Snapshot { return a.latest.Load() }

// Run keeps the snapshot until ctx ends.
func (a *Attributor) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { a.watch(ctx) })
	var (
		list    []*podresourcesapi.PodResources
		listed  time.Time
		kubelet error = ErrStarting
	)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-a.changed:
		}
		// The book is taken before kubelet is asked: see the package comment.
		book, agent := a.current()
		asked := time.Now()
		answer, err := a.list(ctx, asked)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			list, listed, kubelet = answer, asked, nil
		default:
			a.o.Failed(KubeletFailed)
			if kubelet == nil {
				a.o.Logger.Warn("Kubelet does not say what containers have", "err", err)
			}
			kubelet = err
		}
		a.latest.Store(a.snapshot(book, agent, list, listed, kubelet))
		if err != nil {
			timer.Reset(min(again, a.o.Refresh))
		} else {
			timer.Reset(a.o.Refresh)
		}
	}
}

func (a *Attributor) list(ctx context.Context, since time.Time) ([]*podresourcesapi.PodResources, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	return a.o.Kubelet.List(ctx, since)
}

// snapshot joins what is known and young enough.
func (a *Attributor) snapshot(book *nodebook.Book, agent error, list []*podresourcesapi.PodResources, listed time.Time, kubelet error) *Snapshot {
	if kubelet != nil && time.Since(listed) < a.o.MaxAge {
		kubelet = nil // a moment without it changes nothing
	}
	if agent != nil || kubelet != nil {
		return &Snapshot{Agent: agent, Kubelet: kubelet}
	}
	return join(a.o.Domain, book, list)
}

// watch follows the agent's book.
func (a *Attributor) watch(ctx context.Context) {
	timer := time.NewTimer(again)
	defer timer.Stop()
	for {
		err := a.o.Books.Watch(ctx, func(b *nodebook.Book) { a.set(b, nil) })
		if ctx.Err() != nil {
			return
		}
		a.o.Failed(AgentFailed)
		a.set(nil, err)
		timer.Reset(again)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// set takes a book, or the reason why there is none.
func (a *Attributor) set(b *nodebook.Book, err error) {
	a.mu.Lock()
	switch {
	case err == nil:
		a.book, a.agentErr, a.lostAt = b, nil, time.Time{}
	case a.lostAt.IsZero():
		a.agentErr, a.lostAt = err, time.Now()
		a.o.Logger.Warn("The node agent does not say who holds what", "err", err)
	default:
		a.agentErr = err
	}
	a.mu.Unlock()
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// current returns the book, and why it does not count. An agent that is replaced is away for a moment.
func (a *Attributor) current() (*nodebook.Book, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.book != nil && (a.lostAt.IsZero() || time.Since(a.lostAt) < a.o.MaxAge) {
		return a.book, nil
	}
	return nil, a.agentErr
}
