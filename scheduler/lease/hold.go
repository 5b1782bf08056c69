package lease

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ErrNotHeld is what every refusal wraps.
var ErrNotHeld = errors.New("this process cannot be sure that it still leads")

// Term numbers the times at which this process got the lease. Without an election there is one, 0.
type Term uint64

// Hold is what a process knows of its hold on the leader lease. Until Watch is called there is no
// election, and it is always held.
type Hold struct {
	clock clock.PassiveClock

	// mu guards all below.
	mu      sync.Mutex
	elected bool
	term    Term
	lost    string        // why it is not held, whatever the clock says; empty while it may be
	from    time.Time     // from when the last renewal that succeeded counts
	good    time.Duration // for how long after that it is held
}

// NewHold returns a hold without an election.
func NewHold(c clock.PassiveClock) *Hold { return &Hold{clock: c} }

// Term returns the present term, or an error if the lease is not held.
func (h *Hold) Term() (Term, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.term, h.checkLocked()
}

// Check returns nil if the lease is held, and was all the time since the given term began.
func (h *Hold) Check(t Term) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.checkLocked(); err != nil {
		return err
	}
	if t != h.term {
		return fmt.Errorf("%w: it lost the lease and got it again meanwhile", ErrNotHeld)
	}
	return nil
}

func (h *Hold) checkLocked() error {
	switch {
	case !h.elected:
		return nil
	case h.lost != "":
		return fmt.Errorf("%w: %s", ErrNotHeld, h.lost)
	}
	if age := since(h.from, h.clock.Now()); age >= h.good {
		return fmt.Errorf("%w: it renewed its lease %s ago, which is good for %s", ErrNotHeld, age.Round(time.Millisecond), h.good)
	}
	return nil
}

// since is the longer of the times that the monotonic clock and the wall clock show. The monotonic one
// stands still while a machine sleeps; the wall clock can be set back, but not make this shorter.
func since(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// elect makes the hold depend on renewals.
func (h *Hold) elect() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.elected, h.lost = true, "it has not got the lease yet"
}

// lose ends the term. A renewal that succeeds later begins another one.
func (h *Hold) lose(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = why
}

// renewed notes a renewal that was sent at the given time and counts from an earlier one. The term goes on
// if nobody else can have led since the renewal before: this process did not read that somebody else has
// the lease, nor was so long without one that the others could have got it. An elector may not know of
// the second: coordinated election can have given the lease to R2 and back while R1 was paused.
func (h *Hold) renewed(from, sent time.Time, good, duration time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != "" || since(h.from, sent) >= duration {
		h.lost = ""
		h.term++
	}
	h.from, h.good = from, good
}
