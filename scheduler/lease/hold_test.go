package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/topscloud/topscloud/scheduler/lease"
)

const (
	duration = 15 * time.Second
	deadline = 10 * time.Second
)

var errLost = errors.New("connection lost")

// lock is the API server's side of a lease as one candidate sees it. Each call first runs what the test
// put into before, and answers with err.
type lock struct {
	resourcelock.Interface
	holder string
	before func()
	err    error
}

func (l *lock) Identity() string { return "me" }

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.err != nil {
		return nil, nil, l.err
	}
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, nil
}

func (l *lock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	if l.before != nil {
		l.before()
	}
	if l.err == nil {
		l.holder = r.HolderIdentity
	}
	return l.err
}

func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

// bench is one process's hold, at a time that the test sets.
type bench struct {
	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	inner   *lock
	hold    *lease.Hold
	watched resourcelock.Interface
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), inner: &lock{}}
	b.hold = lease.NewHold(b.clock)
	b.watched = b.hold.Watch(b.inner, deadline)
	return b
}

func (b *bench) pass(d time.Duration) { b.clock.SetTime(b.clock.Now().Add(d)) }

// renew sends a renewal as the elector of the given identity does.
func (b *bench) renew(holder string) {
	if err := b.watched.Update(b.t.Context(), b.record(holder)); !errors.Is(err, b.inner.err) {
		b.t.Fatal(err)
	}
}

func (b *bench) record(holder string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: int(duration / time.Second), RenewTime: metav1.NewTime(b.clock.Now())}
}

func (b *bench) read() {
	if _, _, err := b.watched.Get(b.t.Context()); !errors.Is(err, b.inner.err) {
		b.t.Fatal(err)
	}
}

// term returns the present term, which must be held.
func (b *bench) term() lease.Term {
	b.t.Helper()
	term, err := b.hold.Term()
	if err != nil {
		b.t.Fatal(err)
	}
	return term
}

func TestHold(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do   func(*bench)
		want string // part of the refusal; empty means held, in the term that began first
	}{
		"nothing happened":                   {func(*bench) {}, ""},
		"just before the renewal is too old": {func(b *bench) { b.pass(deadline - 1) }, ""},
		"the renewal is too old":             {func(b *bench) { b.pass(deadline) }, "renewed its lease 10s ago, which is good for 10s"},
		"renewed late, and nobody could have led": {func(b *bench) {
			b.pass(duration - 1)
			b.renew("me")
		}, ""},
		"renewed so late that somebody could have led": {func(b *bench) {
			b.pass(duration)
			b.renew("me")
		}, "lost the lease and got it again"},
		"the answer came late, and the request was sent in time": {func(b *bench) {
			b.pass(5 * time.Second)
			b.inner.before = func() { b.pass(9 * time.Second) }
			b.renew("me")
		}, ""},
		"the answer is young, and the request was sent too long ago": {func(b *bench) {
			b.pass(5 * time.Second)
			b.inner.before = func() { b.pass(deadline) }
			b.renew("me")
		}, "renewed its lease 10s ago"},
		"the same record is sent again after its answer was lost": {func(b *bench) {
			b.pass(5 * time.Second)
			r := b.record("me")
			b.inner.err = errLost
			b.renew("me")
			b.pass(9 * time.Second)
			b.inner.err = nil
			if err := b.watched.Update(b.t.Context(), r); err != nil {
				b.t.Fatal(err)
			}
			b.pass(time.Second)
		}, "renewed its lease 10s ago"},
		"others do not see fractions of a second": {func(b *bench) {
			b.pass(5*time.Second + 900*time.Millisecond)
			b.renew("me")
			b.pass(9*time.Second + 100*time.Millisecond)
		}, "renewed its lease 10s ago"},
		"somebody else has it, who must not lose it by our giving up": {func(b *bench) {
			b.inner.holder = "you"
			b.read()
			if err := b.watched.Update(b.t.Context(), b.record("")); err == nil || b.inner.holder != "you" {
				b.t.Errorf("the lease of %q was given up: %v", "you", err)
			}
		}, "gave up the lease"},
		"a renewal without an answer counts for nothing": {func(b *bench) {
			b.pass(5 * time.Second)
			b.inner.err = errLost
			b.renew("me")
			b.pass(5 * time.Second)
		}, "renewed its lease 10s ago"},
		"somebody else has it": {func(b *bench) {
			b.inner.holder = "you"
			b.read()
		}, "you holds the lease"},
		"nobody has it": {func(b *bench) {
			b.inner.holder = ""
			b.read()
		}, "nobody holds the lease"},
		"the lease was deleted": {func(b *bench) {
			b.inner.err = apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "l")
			b.read()
		}, "the lease does not exist"},
		"it cannot be read": {func(b *bench) {
			b.inner.err = errLost
			b.read()
		}, ""},
		"it is still its own": {func(b *bench) { b.read() }, ""},
		"it is given up": {func(b *bench) {
			b.read() // as the elector does
			b.renew("")
		}, "gave up the lease"},
		"it is given up, whether or not that is stored": {func(b *bench) {
			b.read()
			b.inner.err = errLost
			b.renew("")
		}, "gave up the lease"},
		"somebody else had it, and it was got again": {func(b *bench) {
			b.inner.holder = "you"
			b.read()
			b.renew("me")
		}, "lost the lease and got it again"},
		"it was deleted and made anew": {func(b *bench) {
			if err := b.watched.Create(b.t.Context(), b.record("me")); err != nil {
				b.t.Fatal(err)
			}
		}, "lost the lease and got it again"},
		"the others wait for less than the renew deadline": {func(b *bench) {
			r := b.record("me")
			r.LeaseDurationSeconds = 3
			if err := b.watched.Update(b.t.Context(), r); err != nil {
				b.t.Fatal(err)
			}
			b.pass(3 * time.Second)
		}, "good for 3s"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.renew("me")
			term := b.term()
			tt.do(b)
			err := b.hold.Check(term)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !errors.Is(err, lease.ErrNotHeld) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Check() = %v, want %q", err, tt.want)
			}
			if now, termErr := b.hold.Term(); termErr == nil && err != nil && now == term {
				t.Errorf("Term() = %d, the term that Check refuses: %v", now, err)
			}
		})
	}
}

func TestHoldBeforeTheFirstRenewal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.hold.Term(); !errors.Is(err, lease.ErrNotHeld) || !strings.Contains(err.Error(), "has not got the lease yet") {
		t.Errorf("Term() = %v", err)
	}
	b.renew("me")
	b.term()
}

// Without an election the process schedules from its start to its end.
func TestHoldWithoutElection(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	hold := lease.NewHold(clock)
	term, err := hold.Term()
	if err != nil {
		t.Fatal(err)
	}
	clock.SetTime(time.Unix(2000, 0))
	if err := hold.Check(term); err != nil {
		t.Error(err)
	}
}
