package feed

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
)

// Options of a feed.
type Options struct {
	// RecordTimeout is how long a bound pod may be without a record.
	RecordTimeout time.Duration
	// Changed is called after what fits on a node may have changed, never under a lock.
	Changed func(node string)
	// Gone is called when a pod that asks for GCU was deleted or bound, so that nobody waits for it.
	Gone func(uid types.UID)
	// Clock is the real one if nil.
	Clock clock.WithTicker
}

// Feed takes events into a ledger.
type Feed struct {
	ledger  *ledger.Ledger
	options Options
	// overdue holds pods without a record until their time is up.
	overdue workqueue.TypedDelayingInterface[types.UID]
	synced  []cache.InformerSynced
}

// New returns a feed that its caller brings the events to. It works until ctx ends; only the time limit
// of missing records needs Start.
func New(ctx context.Context, l *ledger.Ledger, o Options) *Feed {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	f := &Feed{
		ledger: l, options: o,
		overdue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.UID]{Clock: o.Clock, Name: "gcu_record_overdue"}),
	}
	context.AfterFunc(ctx, f.overdue.ShutDown)
	return f
}

// Start attaches a feed to the informers. It runs until ctx ends.
func Start(ctx context.Context, l *ledger.Ledger, pods coreinformers.PodInformer, nodes coreinformers.NodeInformer, o Options) (*Feed, error) {
	f := New(ctx, l, o)
	nodeReg, err := nodes.Informer().AddEventHandler(f.NodeHandler())
	if err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	podReg, err := pods.Informer().AddEventHandler(f.PodHandler(ctx))
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	f.synced = []cache.InformerSynced{nodeReg.HasSynced, podReg.HasSynced}
	go f.run(ctx)
	return f, nil
}

// NodeHandler returns what takes in the events of nodes.
func (f *Feed) NodeHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.observeNode(obj) },
		UpdateFunc: func(_, obj any) { f.observeNode(obj) },
		DeleteFunc: f.removeNode,
	}
}

// PodHandler returns what takes in the events of pods. They must come in order.
func (f *Feed) PodHandler(ctx context.Context) cache.ResourceEventHandler {
	return cache.FilteringResourceEventHandler{
		FilterFunc: f.asks,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { f.observePod(ctx, obj) },
			UpdateFunc: func(old, obj any) { f.updatePod(ctx, old, obj) },
			DeleteFunc: f.removePod,
		},
	}
}

// HasSynced says whether the informers' first list has been taken in whole.
func (f *Feed) HasSynced() bool {
	for _, synced := range f.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// WaitForSync waits for HasSynced.
func (f *Feed) WaitForSync(ctx context.Context) error {
	if f.HasSynced() {
		return nil
	}
	if !cache.WaitForCacheSync(ctx.Done(), f.synced...) {
		return fmt.Errorf("wait for pods and nodes: %w", context.Cause(ctx))
	}
	return nil
}

func (f *Feed) asks(obj any) bool {
	switch o := obj.(type) {
	case *v1.Pod:
		return share.Asks(f.ledger.Names(), o)
	case cache.DeletedFinalStateUnknown:
		return f.asks(o.Obj)
	}
	return false
}

func (f *Feed) observeNode(obj any) {
	if node, ok := obj.(*v1.Node); ok && f.ledger.ObserveNode(node) {
		f.options.Changed(node.Name)
	}
}

func (f *Feed) removeNode(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if node, ok := obj.(*v1.Node); ok {
		f.ledger.RemoveNode(node.Name, node.ResourceVersion)
		f.options.Changed(node.Name)
	}
}

func (f *Feed) observePod(ctx context.Context, obj any) {
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return
	}
	before := f.ledger.Holder(pod.UID)
	outcome := f.ledger.Observe(pod)
	if pod.Spec.NodeName != "" {
		f.options.Gone(pod.UID)
	}
	// Whoever told the ledger of the pod first, its time runs; the queue keeps the earliest of several.
	if h := f.ledger.Holder(pod.UID); h != nil && h.State == ledger.Unrecorded && !h.Overdue {
		klog.FromContext(ctx).V(2).Info("Pod is bound without a GCU record", "pod", klog.KObj(pod), "node", h.Node)
		f.overdue.AddAfter(pod.UID, f.options.RecordTimeout)
	}
	if outcome == ledger.Unchanged {
		return
	}
	if node := pod.Spec.NodeName; node != "" {
		f.options.Changed(node)
	}
	if before != nil && before.Node != pod.Spec.NodeName {
		f.options.Changed(before.Node)
	}
}

func (f *Feed) updatePod(ctx context.Context, old, obj any) {
	// A watch that broke and came back shows a pod deleted and made anew under its name as an update.
	if was, ok := old.(*v1.Pod); ok {
		if now, ok := obj.(*v1.Pod); ok && was.UID != now.UID {
			f.removePod(was)
		}
	}
	f.observePod(ctx, obj)
}

func (f *Feed) removePod(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	pod, ok := obj.(*v1.Pod)
	if !ok {
		return
	}
	h := f.ledger.Holder(pod.UID)
	f.ledger.Gone(pod.UID)
	f.options.Gone(pod.UID)
	// The last state seen may be older than the pod's binding, so the node is the holder's.
	if h != nil {
		f.options.Changed(h.Node)
	}
	if pod.Spec.NodeName != "" && (h == nil || h.Node != pod.Spec.NodeName) {
		f.options.Changed(pod.Spec.NodeName)
	}
}

// run waits for the pods whose record does not come.
func (f *Feed) run(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	for {
		uid, shutdown := f.overdue.Get()
		if shutdown {
			return
		}
		f.Expire(uid)
		f.overdue.Done(uid)
	}
}

// Expire closes the node of a pod that is still without a record when its time is up.
func (f *Feed) Expire(uid types.UID) {
	if !f.ledger.MarkOverdue(uid) {
		return
	}
	if h := f.ledger.Holder(uid); h != nil {
		f.options.Changed(h.Node)
	}
}
