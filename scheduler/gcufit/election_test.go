package gcufit

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/topscloud/topscloud/scheduler/lease"
)

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
)

// election is the Lease object and the time of all clocks.
type election struct {
	on      bool
	clock   *clocktesting.FakePassiveClock
	record  *resourcelock.LeaderElectionRecord
	version int

	terms    int // how often the lease was got
	tookOver int // the last term in which a pod was looked at, so its take-over is done
}

// candidate is what client-go's elector knows, inside a process.
type candidate struct {
	lock     resourcelock.Interface
	electing bool // its one goroutine is in a call
	cut      bool // its renewals reach nobody, whatever else does
	led      bool
	term     lease.Term
	ordinal  int // of the term among those of all processes

	observed    resourcelock.LeaderElectionRecord
	observedRaw []byte
	observedAt  time.Time
}

// elect is one turn of the elector. What a process does that its elector believes to lead goes on until
// somebody kills it.
func (p *process) elect() {
	if p.lock == nil || p.dead || p.electing {
		return
	}
	p.electing = true
	got := p.tryAcquireOrRenew()
	p.electing = false
	if !got || p.dead {
		return
	}
	term, err := p.core.lease.Term()
	switch {
	case err != nil:
		// The answer took so long that the lease may be somebody else's by now.
		p.w.note("%s believes that it leads: %v", p.id, err)
		p.w.outlive(p)
	case term != p.term:
		p.term = term
		p.w.crown(p)
	}
}

// tryAcquireOrRenew is client-go's function of this name.
func (p *process) tryAcquireOrRenew() bool {
	ctx, now := context.Background(), p.w.election.clock.Now()
	r := resourcelock.LeaderElectionRecord{HolderIdentity: p.id, LeaseDurationSeconds: int(leaseDuration / time.Second), RenewTime: metav1.NewTime(now)}
	valid := func() bool {
		return p.observedAt.Add(time.Duration(p.observed.LeaseDurationSeconds) * time.Second).After(now)
	}
	if p.observed.HolderIdentity == p.id && valid() {
		if p.lock.Update(ctx, r) == nil {
			p.observe(r)
			return true
		}
	}
	old, raw, err := p.lock.Get(ctx)
	if err != nil {
		if apierrors.IsNotFound(err) && p.lock.Create(ctx, r) == nil {
			p.observe(r)
			return true
		}
		return false
	}
	if !bytes.Equal(raw, p.observedRaw) {
		p.observe(*old)
		p.observedRaw = raw
	}
	if old.HolderIdentity != "" && valid() && p.observed.HolderIdentity != p.id || p.lock.Update(ctx, r) != nil {
		return false
	}
	p.observe(r)
	return true
}

// holds says whether the process itself is sure that it leads.
func (p *process) holds() bool {
	_, err := p.core.lease.Term()
	return err == nil
}

func (p *process) observe(r resourcelock.LeaderElectionRecord) {
	p.observed, p.observedAt = r, p.w.election.clock.Now()
}

// release is client-go's tryRelease: the record is read, what was remembered decides.
func (p *process) release() {
	if p.electing || p.dead {
		return
	}
	p.electing = true
	defer func() { p.electing = false }()
	if _, _, err := p.lock.Get(context.Background()); err != nil || p.observed.HolderIdentity != p.id {
		return
	}
	r := resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1, RenewTime: metav1.NewTime(p.w.election.clock.Now())}
	err := p.lock.Update(context.Background(), r)
	p.w.note("%s gives up the lease: %v", p.id, err)
	if err == nil {
		p.observe(r)
	}
}

// crown makes a process the leader. The one before goes on as it was, unless it is dead.
func (w *world) crown(p *process) {
	w.note("%s leads", p.id)
	for _, other := range w.alive() {
		if other != p && other.holds() {
			w.fail("%s and %s hold the lease at once", p.id, other.id)
		}
	}
	if w.leader != p {
		if old := w.leader; old != nil && !old.dead {
			w.zombies = append(w.zombies, old)
		}
		w.zombies = slices.DeleteFunc(w.zombies, func(z *process) bool { return z == p })
		w.leader = p
	}
	w.start(p)
	p.cut = false
	w.election.terms++
	p.ordinal = w.election.terms
	for len(w.zombies) > 3 && !w.zombies[0].busy {
		w.zombies[0].kill()
		w.zombies = w.zombies[1:]
	}
}

// outlive is for a process that begins to schedule without the lease.
func (w *world) outlive(p *process) {
	if p != w.leader && !slices.Contains(w.zombies, p) {
		w.zombies = append(w.zombies, p)
		w.start(p)
	}
}

func (w *world) start(p *process) {
	if w.standby == p {
		w.standby = nil
	}
	if !p.led {
		p.led = true
		p.lead()
	}
}

// succeed lets another process get the lease, without anything else happening: the standby, one that led
// before and is still there, or a new one.
func (w *world) succeed() {
	p := w.standby
	if n := len(w.zombies); n > 0 && w.chance(40) {
		p = w.zombies[w.rng.IntN(n)]
	}
	if p == nil || p.electing {
		p = newProcess(w)
	}
	w.inCalm(func() {
		for range 3 {
			if p.elect(); w.leader == p {
				return
			}
			w.pass(leaseDuration + time.Second)
		}
		w.fail("%s does not get the lease", p.id)
	})
}

func (w *world) pass(d time.Duration) { w.election.clock.SetTime(w.election.clock.Now().Add(d)) }

// alive returns the processes that are not dead.
func (w *world) alive() []*process {
	return slices.DeleteFunc(append([]*process{w.leader, w.standby}, w.zombies...), func(p *process) bool { return p == nil || p.dead })
}

// stamp makes a Binding say in which term its pod was looked at.
func stamp(b *v1.Binding, term int) *v1.Binding {
	b.Labels = map[string]string{"term": strconv.Itoa(term)}
	return b
}

// checkTerm wants nothing that was decided in one term to take effect once pods were looked at in a later
// one, whether or not it does harm.
func (w *world) checkTerm(b *v1.Binding) {
	if term, err := strconv.Atoi(b.Labels["term"]); err == nil && term < w.election.tookOver {
		w.fail("%s %s was placed in term %d, and bound after the take-over of term %d", b.Name, b.UID, term, w.election.tookOver)
	}
}

var leases = schema.GroupResource{Resource: "leases"}

// modelLock is the Lease as one process reaches it, with the rules of client-go's LeaseLock.
type modelLock struct {
	resourcelock.Interface
	p     *process
	known int
}

func (l *modelLock) Identity() string { return l.p.id }

// travel is one way of a request or its answer.
func (l *modelLock) travel() error {
	w := l.p.w
	w.perturb()
	switch {
	case l.p.dead:
		return errRefused
	case l.p.cut && !w.calm, w.chance(10):
		return errLost
	}
	return nil
}

func (l *modelLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	e := &l.p.w.election
	if err := l.travel(); err != nil {
		return nil, nil, err
	}
	stored, version := e.record, e.version
	if err := l.travel(); err != nil {
		return nil, nil, err
	}
	if stored == nil {
		return nil, nil, apierrors.NewNotFound(leases, "l")
	}
	l.known = version
	r := *stored
	// Whole seconds, as in the JSON that the elector compares.
	return &r, fmt.Appendf(nil, "%s %d %d", r.HolderIdentity, r.LeaseDurationSeconds, r.RenewTime.Unix()), nil
}

func (l *modelLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.known = 0
	return l.Update(ctx, r)
}

func (l *modelLock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	e := &l.p.w.election
	if err := l.travel(); err != nil {
		return err
	}
	if e.version != l.known {
		return apierrors.NewConflict(leases, "l", fmt.Errorf("version %d, not %d", e.version, l.known))
	}
	e.version++
	e.record = &r
	version := e.version
	if err := l.travel(); err != nil {
		return err
	}
	l.known = version
	return nil
}
