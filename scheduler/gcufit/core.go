package gcufit

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/config"
	"github.com/topscloud/topscloud/scheduler/feed"
)

// core is what all profiles of a process share.
type core struct {
	names         *contract.Names
	recordTimeout time.Duration
	ledger        *ledger.Ledger
	feed          *feed.Feed
	client        clientset.Interface
	pods          cache.SharedIndexInformer
	waiting       *waiting
	settler       *settler
	problems      *problems
	// pause waits between two tries of one Binding; it returns false when ctx ended first.
	pause func(ctx context.Context, d time.Duration) bool

	// lead guards the one-time check that the informers are as new as the moment this process began to
	// schedule; led says that it was made.
	lead sync.Mutex
	led  bool
}

func newCore(ctx context.Context, args *config.Args, handle fwk.Handle) (*core, error) {
	c := &core{
		names: args.Names, recordTimeout: args.RecordTimeout,
		ledger: ledger.New(args.Names), client: handle.ClientSet(),
		waiting:  newWaiting(handle),
		problems: newProblems(handle),
		pause:    pause,
	}
	c.settler = newSettler(ctx, c)
	informers := handle.SharedInformerFactory().Core().V1()
	c.pods = informers.Pods().Informer()
	var err error
	c.feed, err = feed.Start(ctx, c.ledger, informers.Pods(), informers.Nodes(), feed.Options{
		RecordTimeout: args.RecordTimeout,
		Changed:       func(node string) { c.changed(ctx, node) },
		Gone:          c.waiting.remove,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	go c.settler.run()
	return c, nil
}

// changed follows up on a change of a node that no scheduling event may tell of, or tells too early.
func (c *core) changed(ctx context.Context, name string) {
	node := c.ledger.Node(name)
	c.problems.report(name, node)
	if node != nil {
		c.waiting.wake(klog.FromContext(ctx), node)
	}
}

// ready waits until the ledger holds all that the API held when this process began to schedule. A
// standby's informers may lag behind what the leader before it bound in its last moments.
func (c *core) ready(ctx context.Context) error {
	if err := c.feed.WaitForSync(ctx); err != nil {
		return err
	}
	c.lead.Lock()
	defer c.lead.Unlock()
	if c.led {
		return nil
	}
	if err := c.catchUp(ctx); err != nil {
		return fmt.Errorf("read pods as of now: %w", err)
	}
	c.led = true
	return nil
}

// catchUp makes the ledger at least as new as a quorum read of this moment. Where the informer is not
// there yet it reads the pods itself; the ledger takes readings of either in any order.
func (c *core) catchUp(ctx context.Context) error {
	now, err := c.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if !ledger.Newer(now.ResourceVersion, c.pods.LastSyncResourceVersion()) {
		// The informer is there; its listener, the feed, may still be on the way.
		for _, obj := range c.pods.GetStore().List() {
			c.observeBound(obj)
		}
		return nil
	}
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
	})
	return p.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		c.observeBound(obj)
		return nil
	})
}

// observeBound takes in what is bound; pods that ended or vanished since are charged a moment longer.
func (c *core) observeBound(obj any) {
	if pod, ok := obj.(*v1.Pod); ok && pod.Spec.NodeName != "" && !ledger.Ended(pod) {
		c.ledger.Observe(pod)
	}
}
