package gcufit

import (
	"cmp"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
)

// waiting holds the pods that found no room, and wakes them when the ledger says that there is some.
//
// Queueing hints do most of that work. They are not enough alone: the feed and the scheduler's queue
// are two listeners of one informer. Pod A is deleted; the queue hears of it first, looks at waiting
// pod B, and B is tried before the feed has freed A's room; B fails, and nothing wakes it again. And
// some changes (a lost answer settled, a record repaired) have no event at all.
type waiting struct {
	activator fwk.PodActivator

	// mu guards pods and next.
	mu   sync.Mutex
	pods map[types.UID]waiter
	next uint64
}

type waiter struct {
	pod   *v1.Pod
	req   *share.Request
	since uint64
	// woken is the node the pod was last woken for, empty once it was turned away again; tried is that
	// node as it was when the pod was turned away.
	woken string
	tried *ledger.Node
}

func newWaiting(a fwk.PodActivator) *waiting {
	return &waiting{activator: a, pods: map[types.UID]waiter{}}
}

// add notes a pod that fits no node of its cycle's view. If the ledger has moved on since the view was
// taken, the pod is judged once more.
func (w *waiting) add(logger klog.Logger, l *ledger.Ledger, c *cycle, pod *v1.Pod) {
	w.mu.Lock()
	x, again := w.pods[pod.UID]
	if !again {
		x.since = w.next
		w.next++
	}
	woken := x.woken
	x.pod, x.req, x.woken = pod, c.req, ""
	if woken != "" {
		x.tried = c.view.Node(woken)
	}
	w.pods[pod.UID] = x
	w.mu.Unlock()
	if woken != "" {
		w.pass(logger, l, woken)
	}
	now := l.View()
	if now.Generation == c.view.Generation {
		return
	}
	for n := range now.Nodes() {
		if was := c.view.Node(n.Name); was != n && placement.Fits(&n.Node, c.req) == placement.Fit &&
			(was == nil || placement.Fits(&was.Node, c.req) != placement.Fit) {
			w.activator.Activate(logger, map[string]*v1.Pod{podKey(pod): pod})
			return
		}
	}
}

// remove forgets a pod that was bound, reserved or deleted. It returns the node the pod was woken for,
// whose room it may not have taken.
func (w *waiting) remove(uid types.UID) (woken string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	woken = w.pods[uid].woken
	delete(w.pods, uid)
	return woken
}

// forgive lets the pods that were turned away from a node be woken for it once more though its holders are
// the same: a pod that was nominated to it kept them out, and does so no longer.
func (w *waiting) forgive(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, x := range w.pods {
		if x.tried != nil && x.tried.Name == node {
			x.tried = nil
			w.pods[uid] = x
		}
	}
}

// pass gives others the chance on a node that a woken pod made nothing of: it may have found its place
// elsewhere, or something that is none of our business (its affinity, its CPU) keeps it from the node.
func (w *waiting) pass(logger klog.Logger, l *ledger.Ledger, node string) {
	if n := l.Node(node); n != nil {
		w.wake(logger, n)
	}
}

// wake activates the waiting pods that a node has room for, as many as fit it together: the most
// important first, the longest waiting among equals. A pod that was woken for the node in just this
// state, and turned away, is passed over, so that each is tried once per state.
func (w *waiting) wake(logger klog.Logger, n *ledger.Node) {
	w.mu.Lock()
	if len(w.pods) == 0 {
		w.mu.Unlock()
		return
	}
	list := make([]waiter, 0, len(w.pods))
	for _, x := range w.pods {
		if x.tried != n {
			list = append(list, x)
		}
	}
	w.mu.Unlock()
	slices.SortFunc(list, func(a, b waiter) int {
		return cmp.Or(cmp.Compare(priority(b.pod), priority(a.pod)), cmp.Compare(a.since, b.since))
	})
	pods := map[string]*v1.Pod{}
	for _, x := range list {
		plan, _ := placement.Choose(&n.Node, x.req)
		if plan == nil {
			continue
		}
		n = n.With(ledger.Plan(x.pod, n.Name, x.req, plan.Record(&n.Node, x.req)))
		pods[podKey(x.pod)] = x.pod
	}
	if len(pods) == 0 {
		return
	}
	w.mu.Lock()
	for _, pod := range pods {
		if x, ok := w.pods[pod.UID]; ok {
			x.woken = n.Name
			w.pods[pod.UID] = x
		}
	}
	w.mu.Unlock()
	w.activator.Activate(logger, pods)
}

func podKey(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }
