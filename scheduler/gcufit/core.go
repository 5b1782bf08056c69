package gcufit

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

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
	nominations   *nominations
	settler       *settler
	problems      *problems
	// pause waits between two tries of one Binding; it returns false when ctx ended first.
	pause    func(ctx context.Context, d time.Duration) bool
	takeover takeover
}

func newCore(ctx context.Context, args *config.Args, handle fwk.Handle) (*core, error) {
	c := &core{
		names: args.Names, recordTimeout: args.RecordTimeout,
		ledger: ledger.New(args.Names), client: handle.ClientSet(),
		waiting:     newWaiting(handle),
		nominations: newNominations(),
		problems:    newProblems(handle),
		pause:       pause,
	}
	c.takeover = takeover{core: c, parallel: 16}
	c.settler = newSettler(ctx, c)
	informers := handle.SharedInformerFactory().Core().V1()
	c.pods = informers.Pods().Informer()
	var err error
	c.feed, err = feed.Start(ctx, c.ledger, informers.Pods(), informers.Nodes(), feed.Options{
		RecordTimeout: args.RecordTimeout,
		Changed:       func(node string) { c.changed(ctx, node) },
		Gone:          func(uid types.UID) { c.waitsNoMore(ctx, uid, "") },
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	go c.settler.run()
	return c, nil
}

// waitsNoMore follows up on a pod that got its place on a node, or is gone (no node).
func (c *core) waitsNoMore(ctx context.Context, uid types.UID, node string) {
	if woken := c.waiting.remove(uid); woken != "" {
		c.waiting.pass(klog.FromContext(ctx), c.ledger, woken)
	}
	if was := c.nominations.end(uid); was != "" && was != node {
		c.changed(ctx, was)
	}
}

// changed follows up on a change of a node that no scheduling event may tell of, or tells too early.
func (c *core) changed(ctx context.Context, name string) {
	node := c.ledger.Node(name)
	c.problems.report(name, node)
	if node != nil {
		c.waiting.wake(klog.FromContext(ctx), node)
	}
}
