package gcufit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/config"
	"github.com/topscloud/topscloud/scheduler/feed"
	"github.com/topscloud/topscloud/scheduler/lease"
)

// core is what all profiles of a process share.
type core struct {
	names         *contract.Names
	recordTimeout time.Duration
	ledger        *ledger.Ledger
	feed          *feed.Feed
	client        clientset.Interface
	lease         *lease.Hold
	pods          cache.SharedIndexInformer
	waiting       *waiting
	nominations   *nominations
	settler       *settler
	problems      *problems
	// pause waits between two tries of one Binding; it returns false when ctx ended first.
	pause    func(ctx context.Context, d time.Duration) bool
	takeover takeover
	// leads says that this process schedules; a standby watches as well, and tells nobody.
	leads atomic.Bool

	// mu guards profiles, the names that pods know this scheduler by.
	mu       sync.Mutex
	profiles map[string]bool
}

// schedules says whether pods of this name are ours to place.
func (c *core) schedules(pod *v1.Pod) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.profiles[pod.Spec.SchedulerName]
}

func (c *core) addProfile(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.profiles == nil {
		c.profiles = map[string]bool{}
	}
	c.profiles[name] = true
}

func newCore(ctx context.Context, args *config.Args, handle fwk.Handle, hold *lease.Hold) (*core, error) {
	c := &core{
		names: args.Names, recordTimeout: args.RecordTimeout,
		ledger: ledger.New(args.Names), client: handle.ClientSet(), lease: hold,
		waiting:     newWaiting(handle),
		nominations: newNominations(),
		problems:    newProblems(handle),
		pause:       pause,
	}
	c.takeover = takeover{core: c, parallel: 16, now: time.Now}
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
		c.waiting.forgive(was)
		c.changed(ctx, was)
	}
}

// changed follows up on a change of a node that no scheduling event may tell of, or tells too early.
func (c *core) changed(ctx context.Context, name string) {
	node := c.ledger.Node(name)
	if c.leads.Load() {
		c.problems.report(name, node)
	}
	if node != nil {
		c.waiting.wake(klog.FromContext(ctx), node)
	}
}
