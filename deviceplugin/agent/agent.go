package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/deviceplugin/kubelet/checkpoint"
	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
	gcuplugin "github.com/topscloud/topscloud/gcushare/plugin"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// Agent is the agent of one node.
type Agent struct {
	o       Options
	logger  klog.Logger
	ledger  *ledger.Ledger
	pods    *gcuplugin.NodePods
	arbiter *gcuplugin.Arbiter
	reader  *checkpoint.Reader
	lister  *kubelet.PodResources
	events  record.EventRecorder
	servers []*kubelet.Server
	devices [share.Kinds]*kubelet.Devices
	book    nodebook.Publisher
	serves  [share.Kinds]bool

	wake chan struct{} // reconcile
	// collected is touched by reconcile only.
	collected time.Time
	// adopting is held while a pod without record is placed, so that two never get one room.
	adopting sync.Mutex

	// mu guards the fields below. Nothing that could wait is called while it is held.
	mu       sync.Mutex
	tracker  *health.Tracker
	report   health.Report
	looked   bool // the cards were looked at
	units    units
	node     nodeFacts
	version  uint64 // of the capacity told to the ledger
	refusals map[types.UID]*refused
	told     map[types.UID]string // the last event of each pod
	problems []string             // why something is not served, for the condition
	engine   error                // why shares are not served
	ready    bool
}

// nodeFacts is what the agent needs of its Node object.
type nodeFacts struct {
	known       bool
	uid         types.UID
	sharing     bool
	cordon      string
	annotations map[string]string
	conditions  []v1.NodeCondition
	engine      string // containerRuntimeVersion
}

// New returns an agent. It does nothing until Run.
func New(o Options) (*Agent, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	a := &Agent{
		o: o, ledger: ledger.New(o.Names), wake: make(chan struct{}, 1),
		refusals: map[types.UID]*refused{}, told: map[types.UID]string{},
	}
	for _, k := range o.Serve {
		a.serves[k] = true
	}
	for k := range a.devices {
		a.devices[k] = &kubelet.Devices{}
	}
	return a, nil
}

// Run serves until ctx ends. Anything that time may mend is tried again; an error means that the agent
// could not start at all.
func (a *Agent) Run(ctx context.Context) error {
	a.logger = klog.FromContext(ctx).WithValues("node", a.o.Node)
	ctx = klog.NewContext(ctx, a.logger)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer func() {
		cancel()
		wg.Wait()
	}()
	for _, dir := range []string{a.o.StateDir, a.o.CDIDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: a.o.Client.CoreV1().Events("")})
	a.events = broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: "gcu-device-plugin", Host: a.o.Node})

	if err := a.loadHealth(); err != nil {
		return err
	}
	a.loadUnits()

	informer, err := a.startInformer(ctx, &wg)
	if err != nil {
		return err
	}
	if a.lister, err = kubelet.NewPodResources(a.o.PodResources); err != nil {
		return err
	}
	defer a.lister.Close()
	a.reader = checkpoint.NewReader(filepath.Join(a.o.PluginDir, checkpoint.FileName))
	if err := a.openArbiter(); err != nil {
		return err
	}
	defer a.arbiter.Close()

	wg.Go(func() { a.watchCards(ctx) })
	wg.Go(func() { a.watchNode(ctx) })
	if a.o.NRISocket != "" {
		wg.Go(func() { a.watchNRI(ctx) })
	}
	// Nothing is registered before it is known what is held: pods, and the cards' names.
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) || !a.waitLooked(ctx) {
		return nil // ended while waiting
	}
	if err := a.restore(ctx); err != nil {
		a.logger.Error(err, "Not everything that containers have could be restored")
	}
	a.reconcile(ctx)
	if a.o.BookSocket != "" {
		wg.Go(func() {
			// Nobody's containers depend on it.
			if err := nodebook.Serve(ctx, a.o.BookSocket, a.o.Instance, &a.book); err != nil {
				a.logger.Error(err, "Other programs of this node cannot see who holds what")
			}
		})
	}
	if err := a.serve(ctx, &wg); err != nil {
		return err
	}
	a.loop(ctx)
	return nil
}

// startInformer watches the pods of this node and feeds the ledger: one watch, the agent's only one.
func (a *Agent) startInformer(ctx context.Context, wg *sync.WaitGroup) (cache.SharedIndexInformer, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(a.o.Client, 0, informers.WithTweakListOptions(func(l *metav1.ListOptions) {
		l.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", a.o.Node).String()
	}))
	informer := factory.Core().V1().Pods().Informer()
	if err := informer.SetTransform(trim); err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	pods, err := gcuplugin.NewNodePods(a.o.Client, a.o.Node, informer)
	if err != nil {
		return nil, err
	}
	a.pods = pods
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { a.observe(obj) },
		UpdateFunc: func(_, obj any) { a.observe(obj) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if pod, ok := obj.(*v1.Pod); ok {
				a.gone(pod)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	wg.Go(func() { informer.RunWithContext(ctx) })
	return informer, nil
}

// trim drops what the agent never looks at.
func trim(obj any) (any, error) {
	if pod, ok := obj.(*v1.Pod); ok {
		pod.ManagedFields = nil
	}
	return obj, nil
}

func (a *Agent) observe(obj any) {
	pod, ok := obj.(*v1.Pod)
	if !ok || !share.Asks(a.o.Names, pod) {
		return
	}
	if ledger.Ended(pod) {
		a.forgetPod(pod.UID)
	}
	if a.ledger.Observe(pod) != ledger.Unchanged {
		a.trigger()
	}
}

func (a *Agent) gone(pod *v1.Pod) {
	a.forgetPod(pod.UID)
	if a.ledger.Gone(pod.UID) {
		a.trigger()
	}
}

func (a *Agent) forgetPod(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.refusals, uid)
	delete(a.told, uid)
}

// trigger makes the loop look again soon.
func (a *Agent) trigger() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

func (a *Agent) openArbiter() error {
	o := gcuplugin.Options{
		Names: a.o.Names, Node: a.o.Node, Machine: a.machine, Pods: a.pods,
		HostRoot:    a.o.HostRoot,
		Identities:  &kubelet.Identifier{Checkpoints: a.reader, Pods: a.lister, Observe: a.o.Metrics.lookedUp},
		Checkpoints: a.reader, BookPath: a.o.bookPath(), CDIDir: a.o.CDIDir,
		Assigned: a.assigned, Refused: a.refused, Changed: a.trigger,
		Alive:  a.alive,
		Direct: a.o.PassDeviceSpecs, NoCDI: a.withoutCDI,
	}
	if a.o.Unrecorded == Adopt {
		o.Adopt = a.adoptForStart
	}
	var err error
	if a.arbiter, err = gcuplugin.Open(o); err != nil {
		return err
	}
	if aside := a.arbiter.SetAside(); aside != nil {
		a.logger.Error(aside, "The node's book could not be read and is rebuilt from kubelet and the API server")
		a.nodeEvent(v1.EventTypeWarning, "GCUBookSetAside", "the node's book could not be read; it was set aside and is rebuilt from kubelet and the API server")
	}
	return nil
}

// alive says whether processes of a pod run on this node.
func (a *Agent) alive(uid types.UID) bool { return cgroups{root: a.o.HostRoot}.alive(uid) }

// withoutCDI says whether the engine is Docker, which resolves no CDI names for kubelet.
func (a *Agent) withoutCDI() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.HasPrefix(a.node.engine, "docker://")
}

// direct says whether kubelet itself passes whole cards.
func (a *Agent) direct() bool { return a.o.PassDeviceSpecs || a.withoutCDI() }

// restore completes book and tickets, bounded in time: an API server that is away must not keep running
// containers' resources from being registered.
func (a *Agent) restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return a.arbiter.Restore(ctx)
}

// machine is what the arbiter may give out: the cards that are there.
func (a *Agent) machine() gcuplugin.Machine {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := gcuplugin.Machine{UnitMiB: a.units.UnitMiB, SliceCount: a.units.SliceCount}
	for i := range a.report.Cards {
		if c := &a.report.Cards[i]; c.Present && c.Device.UUID != "" {
			m.Devices = append(m.Devices, c.Device)
		}
	}
	return m
}

// serve registers the resources with kubelet.
func (a *Agent) serve(ctx context.Context, wg *sync.WaitGroup) error {
	for _, kind := range a.o.Serve {
		p := a.arbiter.Plugin(kind)
		o := kubelet.Options{
			Resource: p.Resource(), Dir: a.o.PluginDir, Prefix: "enflamegcushare", Instance: a.o.Instance + "-" + kindWord(kind),
			Plugin: p, Devices: a.devices[kind], Settle: a.o.Settle, Observe: a.o.Metrics.kubelet,
		}
		if !kind.Fractional() {
			o.Prefix, o.Plugin = "enflame", &wholePlugin{Plugin: p, agent: a}
		}
		s, err := kubelet.New(o)
		if err != nil {
			return err
		}
		a.servers = append(a.servers, s)
		a.o.Metrics.serves(o.Resource)
		wg.Go(func() {
			if err := s.Serve(ctx); err != nil {
				a.logger.Error(err, "A resource is not served any more", "resource", o.Resource)
			}
		})
	}
	a.mu.Lock()
	a.ready = true
	a.mu.Unlock()
	return nil
}

func kindWord(k share.Kind) string {
	switch k {
	case share.Memory:
		return "memory"
	case share.Slices:
		return "slices"
	case share.Alias:
		return "alias"
	}
	return "cards"
}

// Ready says why this agent does not serve, nil when every resource is registered with kubelet and its
// stream is open.
func (a *Agent) Ready() error {
	a.mu.Lock()
	ready := a.ready
	a.mu.Unlock()
	if !ready {
		return errors.New("starting")
	}
	var errs []error
	for _, s := range a.servers {
		errs = append(errs, s.Ready())
	}
	return errors.Join(errs...)
}

// Book returns what the node gave to whom.
func (a *Agent) Book() contract.Book {
	if a.arbiter == nil {
		return contract.Book{}
	}
	return a.arbiter.Book()
}

// loop reconciles when something changed, and now and then.
func (a *Agent) loop(ctx context.Context) {
	const (
		settle = 50 * time.Millisecond // so that a burst of events costs one look
		idle   = 15 * time.Second
	)
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-a.wake:
			select {
			case <-ctx.Done():
				return
			case <-time.After(settle):
			}
			select {
			case <-a.wake:
			default:
			}
		}
		a.reconcile(ctx)
		timer.Reset(idle)
	}
}
