package scheduler_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/topscloud/topscloud/scheduler/lease"
)

// cuttable is a lock whose requests can be kept from the API server.
type cuttable struct {
	resourcelock.Interface
	cut atomic.Bool
}

var errCut = errors.New("no route to host")

func (c *cuttable) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if c.cut.Load() {
		return nil, nil, errCut
	}
	return c.Interface.Get(ctx)
}

func (c *cuttable) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if c.cut.Load() {
		return errCut
	}
	return c.Interface.Update(ctx, r)
}

// elect has a scheduler run for a lease of the test's namespace. Unlike a real one, a scheduler that lost it
// goes on: that is the time in which it does not know yet.
func (e *env) elect(id string, hold *lease.Hold, lead func()) *cuttable {
	e.t.Helper()
	lock := &cuttable{Interface: &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "gcu-scheduler"}, Client: admin.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: id},
	}}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: hold.Watch(lock, 2*time.Second), LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { lead() }, OnStoppedLeading: func() {}},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { elector.Run(ctx) })
	e.t.Cleanup(func() { cancel(); done.Wait() })
	return lock
}

// Leader R1 is cut off from its lease while its Binding of A is on the way; R2 gets the lease and writes to A.
// R1's Binding is refused for the version, and R1, which finds A unbound, does not try again: R2 is about to
// bind it.
func TestLeaderThatLostItsLease(t *testing.T) {
	e := newEnv(t, machine("n0", 1), machine("n1", 16))
	hold1, hold2 := lease.NewHold(clock.RealClock{}), lease.NewHold(clock.RealClock{})
	f1, f2 := newFaults(map[string][]fault{"a": {held}}), newFaults(map[string][]fault{"a": {held}})
	r1, r2 := e.startHolding(hold1, f1.wrap), e.startHolding(hold2, f2.wrap)
	lock1 := e.elect("r1", hold1, r1.lead)
	// The first pods a scheduler finds are written to, to fence off its predecessor; a comes after.
	e.create(pod("first", gcuMemory, "1", selecting("kubernetes.io/hostname", "n0")))
	e.bound("first")
	e.create(pod("a", gcuMemory, "12"))
	e.until("r1 sent the Binding of a", func(context.Context) bool { return f1.bindings("a") == 1 })

	lock1.cut.Store(true)
	e.elect("r2", hold2, r2.lead)
	e.until("r2 sent the Binding of a", func(context.Context) bool { return f2.bindings("a") == 1 })
	if _, err := hold1.Term(); err == nil {
		t.Error("r1 holds the lease beside r2")
	}
	close(f1.letGo)
	uid := e.get("a").UID
	e.until("r1 gave back what it reserved", func(context.Context) bool { return r1.ledger.Holder(uid) == nil })
	if a := e.get("a"); a.Spec.NodeName != "" || f1.bindings("a") != 1 {
		t.Errorf("a is on node %q, r1 tried %d times to bind it", a.Spec.NodeName, f1.bindings("a"))
	}
	close(f2.letGo)
	record(t, e.bound("a"))
	if n := f1.bindings("a"); n != 1 {
		t.Errorf("r1 tried %d times to bind a", n)
	}
}
