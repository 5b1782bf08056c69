package lease

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// watched is a lock that tells a hold what becomes of it.
type watched struct {
	resourcelock.Interface
	hold          *Hold
	renewDeadline time.Duration
	// holder is who had the lease when it was last read. Only the elector's goroutine calls a lock.
	holder string
}

// Watch makes the hold depend on a lock, and returns the lock to give to the elector in its place.
//
// A renewal is good for the renew deadline, which the elector keeps shorter than the lease's duration.
// The duration that the others go by is the one in the record, in whole seconds.
func (h *Hold) Watch(lock resourcelock.Interface, renewDeadline time.Duration) resourcelock.Interface {
	h.elect()
	return &watched{Interface: lock, hold: h, renewDeadline: renewDeadline}
}

// Get reads the lease. If somebody else has it, or nobody, the term is over at once: an elector that sees
// that goes on trying, and may get the lease again without the process having stopped in between.
func (w *watched) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := w.Interface.Get(ctx)
	if err == nil {
		w.holder = record.HolderIdentity
	}
	switch {
	case apierrors.IsNotFound(err):
		w.hold.lose("the lease does not exist")
	case err != nil:
	case record.HolderIdentity == "":
		w.hold.lose("nobody holds the lease")
	case record.HolderIdentity != w.Identity():
		w.hold.lose(fmt.Sprintf("%s holds the lease", record.HolderIdentity))
	}
	return record, raw, err
}

// Create makes the lease. There was none, so whoever had it before had it in another term.
func (w *watched) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	w.hold.lose("the lease does not exist")
	return w.write(ctx, r, w.Interface.Create)
}

// Update renews the lease, takes it, or gives it up.
func (w *watched) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity != w.Identity() {
		// The next candidate may have it before the answer is here.
		w.hold.lose("it gave up the lease")
		// R1 was cut off and gives up; meanwhile R2 has got the lease. client-go's elector reads R2's record,
		// goes by what it remembered, and empties it: R3 then leads beside R2, which has done nothing wrong.
		if w.holder != w.Identity() {
			return fmt.Errorf("give up the lease: %q holds it", w.holder)
		}
		return w.Interface.Update(ctx, r)
	}
	return w.write(ctx, r, w.Interface.Update)
}

func (w *watched) write(ctx context.Context, r resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	sent := w.hold.clock.Now()
	if err := write(ctx, r); err != nil {
		return err
	}
	duration := time.Duration(r.LeaseDurationSeconds) * time.Second
	w.hold.renewed(countsFrom(r, sent), sent, min(w.renewDeadline, duration), duration)
	return nil
}

// countsFrom returns the earliest time at which another candidate can have begun to wait because of this
// renewal. It is not when the answer came: the others see the renewal as soon as it is stored. Nor is it
// when the request was sent: they see no difference between two records of the same renew time, in whole
// seconds. R1 sends a renewal, its answer is lost, R1 spends ten seconds reading the lease, and sends the
// same record once more, for that is how client-go's elector does it; R2 goes on waiting from the first.
func countsFrom(r resourcelock.LeaderElectionRecord, sent time.Time) time.Time {
	// Add keeps the monotonic reading, Truncate would not.
	from := r.RenewTime.Add(-time.Duration(r.RenewTime.Nanosecond()))
	if from.After(sent) {
		return sent
	}
	return from
}
