package lease_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/topscloud/topscloud/scheduler/lease"
)

// Candidates with client-go's own elector compete for an hour, over a network that takes its time, loses
// requests and answers, and is cut for some of them. Of all holds there ever were, those of processes
// that their elector has given up among them, at most one is held at any time, and for most of the time
// one is.
func TestOneHoldAtATime(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { compete(t, seed) })
		})
	}
}

func compete(t *testing.T, seed uint64) {
	ctx, stop := context.WithCancel(t.Context())
	a := &arena{t: t, rng: rand.New(rand.NewPCG(seed, 0))}
	var candidates sync.WaitGroup
	for i := range 3 {
		candidates.Go(func() { a.campaign(ctx, i) })
	}
	held, changes, holder := 0, 0, -1
	const seconds = 3600
	for range seconds {
		time.Sleep(time.Second)
		for _, i := range a.held() {
			if held++; i != holder {
				holder, changes = i, changes+1
			}
		}
	}
	stop()
	candidates.Wait()
	if held < seconds/2 || changes < 10 {
		t.Errorf("held for %d of %d seconds, %d changes: the test shows nothing", held, seconds, changes)
	}
}

// arena is the Lease object and the network before it.
type arena struct {
	t       *testing.T
	mu      sync.Mutex // guards all below
	rng     *rand.Rand
	record  *resourcelock.LeaderElectionRecord
	version int
	cut     [3]time.Time // until when a candidate reaches nothing
	holds   []*lease.Hold
}

// held returns which holds are held now.
func (a *arena) held() []int {
	a.mu.Lock()
	holds := slices.Clone(a.holds)
	a.mu.Unlock()
	var out []int
	for i, h := range holds {
		if _, err := h.Term(); err == nil {
			out = append(out, i)
		}
	}
	return out
}

// counted is a watched lock that counts the holds when one of them may have opened; no other time can be
// the first at which two are open.
type counted struct {
	resourcelock.Interface
	arena *arena
}

func (c counted) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	err := c.Interface.Update(ctx, r)
	if held := c.arena.held(); len(held) > 1 {
		c.arena.t.Errorf("the holds %v are held at once", held)
	}
	return err
}

func (c counted) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	err := c.Interface.Create(ctx, r)
	if held := c.arena.held(); len(held) > 1 {
		c.arena.t.Errorf("the holds %v are held at once", held)
	}
	return err
}

// campaign runs one process of a candidate after the other.
func (a *arena) campaign(ctx context.Context, candidate int) {
	for process := 0; ctx.Err() == nil; process++ {
		hold := lease.NewHold(clock.RealClock{})
		lock := hold.Watch(&remote{arena: a, candidate: candidate, id: fmt.Sprintf("c%d-%d", candidate, process)}, deadline)
		a.mu.Lock()
		a.holds = append(a.holds, hold)
		a.mu.Unlock()
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: counted{lock, a}, LeaseDuration: duration, RenewDeadline: deadline, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
		})
		if err != nil {
			panic(err) // constants
		}
		run, end := context.WithTimeout(ctx, a.life())
		elector.Run(run)
		end()
	}
}

// life is how long a process lives that does not lose the lease.
func (a *arena) life() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Minute + time.Duration(a.rng.Int64N(int64(5*time.Minute)))
}

// travel is one way of a request or its answer. It fails after the client's time-out.
func (a *arena) travel(candidate int) error {
	a.mu.Lock()
	now := time.Now()
	if a.rng.IntN(60) == 0 {
		a.cut[candidate] = now.Add(time.Duration(a.rng.Int64N(int64(time.Minute))))
	}
	took, lost := time.Duration(a.rng.Int64N(int64(200*time.Millisecond))), a.rng.IntN(20) == 0 || now.Before(a.cut[candidate])
	if a.rng.IntN(10) == 0 {
		took = time.Duration(a.rng.Int64N(int64(12 * time.Second)))
	}
	a.mu.Unlock()
	if lost {
		time.Sleep(deadline / 2)
		return errLost
	}
	time.Sleep(took)
	return nil
}

// remote is the lease as one process reaches it, with the rules of client-go's LeaseLock.
type remote struct {
	arena     *arena
	candidate int
	id        string
	known     int
}

func (r *remote) Identity() string   { return r.id }
func (r *remote) Describe() string   { return "arena" }
func (r *remote) RecordEvent(string) {}

func (r *remote) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	a := r.arena
	if err := a.travel(r.candidate); err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	stored, version := a.record, a.version
	a.mu.Unlock()
	if err := a.travel(r.candidate); err != nil {
		return nil, nil, err
	}
	if stored == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "l")
	}
	record := *stored
	r.known = version
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (r *remote) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	r.known = 0
	return r.Update(ctx, record)
}

func (r *remote) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	a := r.arena
	if err := a.travel(r.candidate); err != nil {
		return err
	}
	a.mu.Lock()
	if a.version != r.known {
		a.mu.Unlock()
		return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "l", errLost)
	}
	a.version++
	version := a.version
	a.record = &record
	a.mu.Unlock()
	if err := a.travel(r.candidate); err != nil {
		return err
	}
	r.known = version
	return nil
}
