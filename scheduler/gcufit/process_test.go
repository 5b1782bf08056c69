package gcufit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/config"
	"github.com/topscloud/topscloud/scheduler/feed"
	"github.com/topscloud/topscloud/scheduler/lease"
)

// process is one scheduler process: the real plugin, ledger, feed and settler below a model of
// kube-scheduler's queue. One that does not lead takes in events and waits.
type process struct {
	w      *world
	id     string
	dead   bool
	busy   bool // a scheduling cycle is on its way: there is one goroutine for them
	stop   context.CancelFunc
	core   *core
	plugin *Plugin
	settle *settleQueue

	podInformer, nodeInformer *informer

	// answers, unless nil, answers each Binding; beforeAnswer runs before a read is answered.
	answers      func(*world, *v1.Binding) error
	beforeAnswer func()

	entries   map[types.UID]*entry // the queue: every pending pod the hints' listener knows
	nominated map[types.UID]string
	nodes     map[string]*v1.Node // the scheduler's cache of nodes
	binding   []*flight
	paused    []*call // of Bind
	overdue   map[types.UID]bool

	candidate
}

func newProcess(w *world) *process {
	ctx, stop := context.WithCancel(context.Background())
	w.processes++
	p := &process{
		w: w, id: fmt.Sprintf("s%d", w.processes), stop: stop, overdue: map[types.UID]bool{}, settle: &settleQueue{keys: map[types.NamespacedName]bool{}},
		entries: map[types.UID]*entry{}, nominated: map[types.UID]string{}, nodes: map[string]*v1.Node{},
	}
	p.podInformer = &informer{log: &w.podLog, store: map[string]any{}}
	p.nodeInformer = &informer{log: &w.nodeLog, store: map[string]any{}}
	args, err := config.Decode(nil)
	if err != nil {
		panic(err) // the defaults
	}
	c := &core{
		names: w.names, recordTimeout: args.RecordTimeout, ledger: ledger.New(w.names), client: &modelClient{p: p}, lease: lease.NewHold(w.election.clock),
		pods: p.podInformer, waiting: newWaiting(p), nominations: newNominations(), problems: newProblems(&modelHandle{p: p}),
		pause: func(context.Context, time.Duration) bool { w.perturb(); return !p.dead },
	}
	c.takeover = takeover{core: c, parallel: 1, now: time.Now}
	c.settler = &settler{core: c, ctx: ctx, queue: p.settle}
	c.feed = feed.New(ctx, c.ledger, feed.Options{
		RecordTimeout: args.RecordTimeout, Changed: func(node string) { c.changed(ctx, node) }, Gone: func(uid types.UID) { c.waitsNoMore(ctx, uid, "") },
	})
	c.addProfile(contract.SchedulerName)
	p.core, p.plugin = c, &Plugin{core: c, handle: &modelHandle{p: p}, args: args}
	if w.election.on {
		p.lock = c.lease.Watch(&modelLock{p: p}, renewDeadline)
	}
	p.podInformer.feed.deliver = toHandler(c.feed.PodHandler(ctx))
	p.nodeInformer.feed.deliver = toHandler(c.feed.NodeHandler())
	p.podInformer.hints.deliver = p.podEvent
	p.nodeInformer.hints.deliver = p.nodeEvent
	pods, nodes, version := w.lists()
	p.podInformer.relist(pods, version)
	p.nodeInformer.relist(nodes, version)
	return p
}

// lead is where the feed and the queue have the first list, without which no cycle starts.
func (p *process) lead() {
	for range len(p.podInformer.feed.queue) {
		p.podInformer.feed.next()
	}
	for range len(p.nodeInformer.feed.queue) {
		p.nodeInformer.feed.next()
	}
}

// kill ends a process. Requests it had on their way may arrive yet.
func (p *process) kill() {
	p.dead = true
	p.stop()
	p.binding = nil
	p.w.inCalm(func() {
		for p.resumeOne() {
		}
	})
}

// deliver moves one of the event streams on.
func (p *process) deliver() {
	streams := []func() bool{
		p.podInformer.pump, p.podInformer.feed.next, p.podInformer.hints.next,
		p.nodeInformer.pump, p.nodeInformer.feed.next, p.nodeInformer.hints.next,
	}
	stream := streams[p.w.rng.IntN(len(streams))]
	for range 1 + p.w.rng.IntN(4) {
		stream()
	}
}

// deliverAll brings everything up to date.
func (p *process) deliverAll() {
	for p.podInformer.pump() || p.nodeInformer.pump() {
	}
	for p.nodeInformer.feed.next() || p.podInformer.feed.next() || p.nodeInformer.hints.next() || p.podInformer.hints.next() {
	}
}

// settleOne has the settler look at one pod in doubt, as its queue would after a while.
func (p *process) settleOne() bool {
	keys := slices.SortedFunc(maps.Keys(p.settle.keys), func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) })
	if len(keys) == 0 {
		return false
	}
	key := keys[p.w.rng.IntN(len(keys))]
	delete(p.settle.keys, key)
	done := p.core.settler.settle(key)
	p.w.note("settle %s: %t", key.Name, done)
	if !done {
		p.settle.keys[key] = true
	}
	return true
}

// Activate wakes pods by name, as the scheduling queue does.
func (p *process) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	for _, pod := range pods {
		if e := p.entries[pod.UID]; e != nil {
			e.wake()
		}
	}
}

// settleQueue remembers what the settler is to look at; the model decides when.
type settleQueue struct {
	workqueue.TypedRateLimitingInterface[types.NamespacedName]
	keys map[types.NamespacedName]bool
}

func (q *settleQueue) Add(key types.NamespacedName) { q.keys[key] = true }

type modelHandle struct {
	fwk.Handle
	p *process
}

func (h *modelHandle) Activate(l klog.Logger, pods map[string]*v1.Pod) { h.p.Activate(l, pods) }
func (h *modelHandle) APICacher() fwk.APICacher                        { return nil }
func (h *modelHandle) EventRecorder() events.EventRecorderLogger       { return nil }
func (h *modelHandle) ClientSet() clientset.Interface                  { return h.p.core.client }

func (h *modelHandle) NominatedPodsForNode(node string) []fwk.PodInfo {
	var out []fwk.PodInfo
	for _, uid := range slices.Sorted(maps.Keys(h.p.nominated)) {
		if e := h.p.entries[uid]; h.p.nominated[uid] == node && e != nil {
			out = append(out, podInfo{pod: e.pod})
		}
	}
	return out
}

type podInfo struct {
	fwk.PodInfo
	pod *v1.Pod
}

func (i podInfo) GetPod() *v1.Pod { return i.pod }

type nodeInfo struct {
	fwk.NodeInfo
	node *v1.Node
}

func (i nodeInfo) Node() *v1.Node { return i.node }

// cycleState is the part of the framework's state that the plugin uses.
type cycleState struct {
	fwk.CycleState
	data map[fwk.StateKey]fwk.StateData
}

func newState() *cycleState { return &cycleState{data: map[fwk.StateKey]fwk.StateData{}} }

func (s *cycleState) Read(k fwk.StateKey) (fwk.StateData, error) {
	if d, ok := s.data[k]; ok {
		return d, nil
	}
	return nil, fwk.ErrNotFound
}

func (s *cycleState) Write(k fwk.StateKey, d fwk.StateData) { s.data[k] = d }

func (s *cycleState) Clone() fwk.CycleState {
	c := newState()
	for k, d := range s.data {
		c.data[k] = d.Clone()
	}
	return c
}

type nodeStatuses map[string]*fwk.Status

func (s nodeStatuses) Get(node string) *fwk.Status { return s[node] }

func (s nodeStatuses) NodesForStatusCode(fwk.NodeInfoLister, fwk.Code) ([]fwk.NodeInfo, error) {
	return nil, nil
}
