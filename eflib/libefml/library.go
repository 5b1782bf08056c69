package libefml

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ebitengine/purego"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/internal/lane"
	"github.com/topscloud/topscloud/topology"
)

// Options say which library to open and how long to wait for it.
type Options struct {
	// Path is a library to use; empty searches as SearchPath says.
	Path string
	// HostRoot is the root of the host's files, as SearchPath takes it.
	HostRoot string
	// CallTimeout is the longest time a caller waits for one call, 3 s when 0.
	CallTimeout time.Duration
}

const (
	defaultCallTimeout = 3 * time.Second
	// graceTime is how long a new start waits for calls in the library to come back. Those that have
	// not are taken as stuck.
	graceTime = time.Second
	// retryTime is how long a failed start is not tried again.
	retryTime = 200 * time.Millisecond
)

// ErrClosed is the error of every call after Close.
var ErrClosed = errors.New("libefml is closed")

// Library is an opened libefml. It may be shared between goroutines.
type Library struct {
	path    string
	table   map[string]uintptr
	timeout time.Duration
	host    *lane.Lane
	events  *lane.Lane
	cards   [maxCards]*lane.Lane

	mu sync.Mutex // guards all below
	// ready says that EfmlInit succeeded and no call has denied it since.
	ready, started, closed bool
	// active counts calls inside the library.
	active   int
	failedAt time.Time
	failure  error
	// index is where each card was last seen.
	index map[topology.Address]uint32
}

// Open loads the library. A host without it is ErrNoLibrary. Its driver may come later: Open does not
// start the library, the first call does.
func Open(o Options) (*Library, error) {
	candidates := SearchPath(o.HostRoot)
	if o.Path != "" {
		candidates = []string{o.Path}
	}
	path, table, err := load(candidates)
	if err != nil {
		return nil, err
	}
	l := &Library{
		path: path, table: table, timeout: o.CallTimeout, host: lane.New(), events: lane.New(),
		index: map[topology.Address]uint32{},
	}
	if l.timeout <= 0 {
		l.timeout = defaultCallTimeout
	}
	for i := range l.cards {
		l.cards[i] = lane.New()
	}
	return l, nil
}

// Path returns the file that was opened.
func (l *Library) Path() string { return l.path }

// Close ends the use of the library. Calls that hang inside of it are left there.
func (l *Library) Close() error {
	l.mu.Lock()
	started := l.started && !l.closed
	l.closed, l.ready = true, false
	l.mu.Unlock()
	if !started {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.timeout+graceTime)
	defer cancel()
	return l.host.Do(ctx, func() {
		if l.drained() {
			purego.SyscallN(l.table["EfmlShutdown"])
		}
	})
}

// invoke calls a function in a lane. call gets its address and returns its code; it must keep alive
// what it passes pointers to, since it may outlast invoke.
func (l *Library) invoke(ctx context.Context, in *lane.Lane, function string, call func(symbol uintptr) uintptr) error {
	symbol, found := l.table[function]
	if !found {
		return fmt.Errorf("%s: no such function in this library: %w", function, eflib.ErrNotSupported)
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	for again := false; ; again = true {
		if err := l.start(ctx); err != nil {
			return err
		}
		code := uint32(codeUninitialised) // unless the call takes place
		if err := in.Do(ctx, func() {
			if l.enter() {
				defer l.leave()
				code = uint32(call(symbol))
			}
		}); err != nil {
			return fmt.Errorf("%s: %w", function, err)
		}
		if code == codeUninitialised || code == codeNoDriver {
			l.stale()
		}
		if code != codeUninitialised || again {
			return codeError(function, code)
		}
	}
}

// start initialises the library unless it is. After the driver was reloaded the library answers that
// it is not, and the next call starts it again.
func (l *Library) start(ctx context.Context) error {
	l.mu.Lock()
	ready, closed := l.ready, l.closed
	l.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case ready:
		return nil
	}
	result := errors.New("not started")
	if err := l.host.Do(ctx, func() { result = l.initialise() }); err != nil {
		return fmt.Errorf("EfmlInit: %w", err)
	}
	return result
}

// initialise runs in the lane of the host, so there is one at a time; and while the library is not
// ready no call enters it.
func (l *Library) initialise() error {
	l.mu.Lock()
	ready, closed, started, failure := l.ready, l.closed, l.started, l.failure
	if time.Since(l.failedAt) > retryTime {
		failure = nil
	}
	l.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case ready:
		return nil
	case failure != nil:
		return failure
	}
	// A call that hangs must not keep the other cards from coming back, so it is not waited for, and
	// the library's own end is left out under it.
	if started && l.drained() {
		purego.SyscallN(l.table["EfmlShutdown"])
	}
	const withDriver = 0
	code, _, _ := purego.SyscallN(l.table["EfmlInit"], withDriver)
	err := codeError("EfmlInit", uint32(code))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready, l.started = err == nil && !l.closed, err == nil
	l.failure, l.failedAt = err, time.Now()
	return err
}

// drained waits a while for the calls inside the library and says whether all have come back.
func (l *Library) drained() bool {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for end := time.Now().Add(graceTime); ; <-ticker.C {
		l.mu.Lock()
		active := l.active
		l.mu.Unlock()
		if active == 0 || time.Now().After(end) {
			return active == 0
		}
	}
}

func (l *Library) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ready {
		l.active++
	}
	return l.ready
}

func (l *Library) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active--
}

func (l *Library) stale() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready = false
}
