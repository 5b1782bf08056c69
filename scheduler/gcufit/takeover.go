package gcufit

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/scheduler/lease"
)

// takeover makes a process that begins to schedule safe from the one before it.
//
// Two things of the former leader can be missing here. What it bound in its last moments may not have
// come through this process's informers yet. And a Binding that it sent may still be on its way: leader
// R1 sends the Binding of pod A and dies; R2 reads all pods, A among them and unbound, gives A's room
// to pod B; then the API server comes to A's Binding and stores it. So R2 reads what is bound as of now,
// and writes to each unbound pod that asks for GCU, after which the API server refuses Bindings of R1.
// A pod made later is safe: R1 binds only while its own clock tells it that it leads (package lease), and
// that time was over before R2 got the lease. The same goes for a version of a pod made later.
//
// A process can lose the lease and get it again, if the one that had it in between gave it up. Each term
// needs a take-over of its own, and what was placed in an earlier one is not bound any more.
//
// One pod that cannot be written to (it is as large as etcd takes, a webhook refuses it) must not keep all
// others waiting for ever: after grace no Binding sent before the first try can still be under way.
type takeover struct {
	core     *core
	parallel int // writes at once
	now      func() time.Time

	// mu guards all below, and is held over the API calls: nobody may place a pod before they are made.
	mu     sync.Mutex
	done   bool
	term   lease.Term // the take-over is, or was, for
	since  time.Time  // the first try
	fenced map[types.UID]bool
	// borrowed are pods charged from a list. The feed frees them once it hears that they are gone, but it
	// never does if they came and went in a gap of its watch, or went just before they were charged.
	borrowed []*v1.Pod
}

// grace is longer than the API server works on any request: its own limit is a minute.
const grace = 70 * time.Second

// ready waits until the ledger holds all that the API held when this process began to schedule, and
// returns the term of leading that this is true for. It fails if the process does not lead.
func (c *core) ready(ctx context.Context) (lease.Term, error) {
	if err := c.feed.WaitForSync(ctx); err != nil {
		return 0, err
	}
	t := &c.takeover
	t.mu.Lock()
	defer t.mu.Unlock()
	// Before the API is read: if the term ends meanwhile, what was read is worth nothing to the next one.
	term, err := c.lease.Term()
	if err != nil {
		return 0, err
	}
	if t.term != term {
		t.done, t.term, t.since, t.fenced = false, term, time.Time{}, nil
	}
	if !t.done {
		err := t.run(ctx)
		// A try that fails half-way has charged pods too, and there need be no other try.
		if t.giveBackLocked(ctx); len(t.borrowed) > 0 {
			// No event need ever come of them, so the settler looks again until none is left.
			first := t.borrowed[0]
			c.settler.queue.Add(types.NamespacedName{Namespace: first.Namespace, Name: first.Name})
		}
		if err != nil {
			return 0, fmt.Errorf("take over from the scheduler before: %w", err)
		}
		t.done, t.fenced = true, nil
		c.leads.Store(true)
		for n := range c.ledger.View().Nodes() {
			c.problems.report(n.Name, n)
		}
	}
	return term, nil
}

func (t *takeover) run(ctx context.Context) error {
	if t.since.IsZero() {
		t.since = t.now()
	}
	var unbound []*v1.Pod
	err := t.list(ctx, func(pod *v1.Pod) {
		switch {
		case ledger.Ended(pod) || !share.Asks(t.core.names, pod):
		case pod.Spec.NodeName != "":
			t.charge(pod)
		case !t.fenced[pod.UID] && t.core.schedules(pod):
			unbound = append(unbound, pod)
		}
	})
	if err != nil {
		return fmt.Errorf("read pods as of now: %w", err)
	}
	return t.fence(ctx, unbound)
}

// list yields all pods at least as new as a quorum read of this moment: from the informer's store where
// that has come so far, else from the API server.
func (t *takeover) list(ctx context.Context, yield func(*v1.Pod)) error {
	pods := t.core.client.CoreV1().Pods(metav1.NamespaceAll)
	now, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	take := func(obj any) {
		if pod, ok := obj.(*v1.Pod); ok {
			yield(pod)
		}
	}
	// The informer's own last version will not do: it runs ahead of its store.
	if store := t.core.pods.GetStore(); !ledger.Newer(now.ResourceVersion, store.LastStoreSyncResourceVersion()) {
		for _, obj := range store.List() {
			take(obj)
		}
		return nil
	}
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) })
	return p.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		take(obj)
		return nil
	})
}

func (t *takeover) charge(pod *v1.Pod) {
	t.core.ledger.Observe(pod)
	t.borrowed = append(t.borrowed, pod)
}

// fence writes to the given pods. Those it has written to are not written to again by a later try.
func (t *takeover) fence(ctx context.Context, unbound []*v1.Pod) error {
	results, errs := make([]*v1.Pod, len(unbound)), make([]error, len(unbound))
	workqueue.ParallelizeUntil(ctx, t.parallel, len(unbound), func(i int) {
		pod := unbound[i]
		patch := fencePatch(pod.UID, tookOver, time.Now())
		results[i], errs[i] = t.core.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	})
	if err := context.Cause(ctx); err != nil {
		return err
	}
	left := 0
	for i, pod := range unbound {
		switch {
		case apierrors.IsNotFound(errs[i]):
			continue
		case errs[i] != nil:
			left++
			klog.FromContext(ctx).V(2).Info("Cannot write to a pod at take-over", "pod", klog.KObj(pod), "err", errs[i])
			continue
		case results[i].Spec.NodeName != "" && !ledger.Ended(results[i]):
			t.charge(results[i])
		}
		if t.fenced == nil {
			t.fenced = map[types.UID]bool{}
		}
		t.fenced[pod.UID] = true
	}
	if rest := grace - t.now().Sub(t.since); left > 0 && rest > 0 {
		return fmt.Errorf("%d of %d waiting pods cannot be written to, so their former bindings may still come; going on without in %s at the latest", left, len(unbound), rest.Round(time.Second))
	}
	return nil
}

// giveBack lets go of the borrowed pods it can, and reports whether none is left. It never waits.
func (t *takeover) giveBack(ctx context.Context) bool {
	if !t.mu.TryLock() {
		return false
	}
	defer t.mu.Unlock()
	t.giveBackLocked(ctx)
	return len(t.borrowed) == 0
}

// giveBackLocked lets go of borrowed pods: those in the informer's store are the feed's from now on, and
// those that are not, though the store has come past the reading, are gone.
func (t *takeover) giveBackLocked(ctx context.Context) {
	store := t.core.pods.GetStore()
	// Read before the pods are looked for, or one might be stored in between.
	version := store.LastStoreSyncResourceVersion()
	var keep []*v1.Pod
	for _, pod := range t.borrowed {
		obj, exists, err := store.GetByKey(podKey(pod))
		if now, ok := obj.(*v1.Pod); err == nil && exists && ok && now.UID == pod.UID {
			continue
		}
		if ledger.Newer(pod.ResourceVersion, version) {
			keep = append(keep, pod)
			continue
		}
		if t.core.ledger.Gone(pod.UID) {
			t.core.changed(ctx, pod.Spec.NodeName)
		}
	}
	t.borrowed = keep
}
