package simnode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/sandbox/simnode/fault"
)

// Options of a Manager. The zero value is what the sandbox uses.
type Options struct {
	// Names are the resource and label names; nil means contract.Default.
	Names *contract.Names
	// Workers is the number of nodes served at a time; 0 means 4.
	Workers int
	// Now is the clock of pod lifetimes; nil means time.Now.
	Now func() time.Time
	// Client, if set, makes each node run the real node agent and feature discovery beside an imitation of kubelet's
	// device manager, over real sockets; it returns the client of one of a node's service accounts (AgentAccount,
	// DiscoveryAccount). Without it nodes write what both would, which is enough for a scheduler and light enough for
	// thousands of nodes.
	Client func(ctx context.Context, node, account string) (kubernetes.Interface, error)
	// Exporter, if set, makes each of these nodes run the exporter too; it returns the address to serve on.
	Exporter func(node string) (string, error)
}

// The service accounts in kube-system that nodes ask Options.Client for.
const (
	AgentAccount     = "gcu-device-plugin"
	DiscoveryAccount = "gcu-feature-discovery"
)

// Manager runs simulated nodes: one informer and one queue serve all of them. A node is served by one
// worker at a time.
type Manager struct {
	client  kubernetes.Interface
	options Options
	queue   workqueue.TypedRateLimitingInterface[string]

	factory    informers.SharedInformerFactory
	pods       cache.SharedIndexInformer
	nodeLister corelisters.NodeLister
	synced     chan struct{}
	addresses  atomic.Int64

	// hosts counts the nodes whose programs run, until endHosts.
	hosts    sync.WaitGroup
	living   context.Context
	endHosts context.CancelFunc

	// mu guards nodes.
	mu    sync.Mutex
	nodes map[string]*node
}

const byNode = "node"

// NewManager returns a manager without nodes. Run serves it.
func NewManager(client kubernetes.Interface, o Options) *Manager {
	if o.Names == nil {
		o.Names = contract.Default()
	}
	if o.Workers == 0 {
		o.Workers = 4
		if o.Client != nil {
			o.Workers = 16 // starting a container waits for the agent
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Manager{
		client: client, options: o, nodes: map[string]*node{}, synced: make(chan struct{}),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](10*time.Millisecond, 2*time.Second)),
		factory: informers.NewSharedInformerFactory(client, 0),
	}
	m.living, m.endHosts = context.WithCancel(context.Background())
	m.pods = m.factory.Core().V1().Pods().Informer()
	m.nodeLister = m.factory.Core().V1().Nodes().Lister()
	// Neither call can fail on an informer that was just made.
	_ = m.pods.AddIndexers(cache.Indexers{byNode: func(obj any) ([]string, error) {
		return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
	}})
	_, _ = m.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { m.podEvent(obj) },
		UpdateFunc: func(_, obj any) { m.podEvent(obj) },
		DeleteFunc: func(obj any) { m.podEvent(obj) },
	})
	_, _ = m.factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { m.enqueue(obj.(*corev1.Node).Name) },
		UpdateFunc: func(_, obj any) { m.enqueue(obj.(*corev1.Node).Name) },
	})
	return m
}

func (m *Manager) podEvent(obj any) {
	if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = d.Obj
	}
	if p, ok := obj.(*corev1.Pod); ok && p.Spec.NodeName != "" {
		m.enqueue(p.Spec.NodeName)
	}
}

func (m *Manager) enqueue(name string) {
	m.mu.Lock()
	_, ours := m.nodes[name]
	m.mu.Unlock()
	if ours {
		m.queue.Add(name)
	}
}

// Run serves the nodes until ctx ends, then returns when nothing of it runs any more. The nodes stay
// in the cluster.
func (m *Manager) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer func() {
		wg.Wait()
		m.endHosts()
		m.hosts.Wait()
	}()
	m.factory.Start(ctx.Done())
	defer m.factory.Shutdown()
	for _, ok := range m.factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			m.queue.ShutDown()
			return
		}
	}
	close(m.synced)
	for range m.options.Workers {
		wg.Go(func() { m.work(ctx) })
	}
	wg.Go(func() { m.heartbeats(ctx) })
	<-ctx.Done()
	m.queue.ShutDown()
}

func (m *Manager) work(ctx context.Context) {
	for {
		name, shutdown := m.queue.Get()
		if shutdown {
			return
		}
		m.mu.Lock()
		n := m.nodes[name]
		m.mu.Unlock()
		after, err := n.sync(ctx)
		switch {
		case err == nil:
			m.queue.Forget(name)
			if after > 0 {
				m.queue.AddAfter(name, after)
			}
		case ctx.Err() != nil:
		case conflictOnly(err):
			// The informer is behind our own write; the event that is on its way would do, a short
			// wait is for the case that it came already.
			m.queue.AddAfter(name, 50*time.Millisecond)
		default:
			klog.FromContext(ctx).Error(err, "Simulated node could not be served, trying again", "node", name)
			m.queue.AddRateLimited(name)
		}
		m.queue.Done(name)
	}
}

// conflictOnly reports whether every error joined in err is a lost race on an object.
func conflictOnly(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if !conflictOnly(e) {
				return false
			}
		}
		return true
	}
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}

// Add registers a machine as a node, or takes over the node of that name, and serves it from now on.
// It returns when the node is ready in the API; WaitReady waits for what runs on it.
func (m *Manager) Add(ctx context.Context, machine Machine) error {
	n := &node{Machine: machine, manager: m, names: m.options.Names, labelled: make(chan struct{})}
	if err := n.register(ctx); err != nil {
		return fmt.Errorf("node %s: %w", machine.Name, err)
	}
	if m.options.Client != nil {
		if err := n.startReal(ctx); err != nil {
			return fmt.Errorf("node %s: %w", machine.Name, err)
		}
	}
	m.mu.Lock()
	_, twice := m.nodes[machine.Name]
	if !twice {
		n.index = len(m.nodes) + 1
		m.nodes[machine.Name] = n
	}
	m.mu.Unlock()
	if twice {
		return fmt.Errorf("node %s: simulated already", machine.Name)
	}
	m.queue.Add(machine.Name)
	return nil
}

// WaitReady returns when feature discovery has labelled all nodes and their exporters answer, for nodes that run them.
func (m *Manager) WaitReady(ctx context.Context) error {
	m.mu.Lock()
	nodes := slices.Collect(maps.Values(m.nodes))
	m.mu.Unlock()
	for _, n := range nodes {
		if n.real == nil {
			continue
		}
		select {
		case <-n.labelled:
		case <-ctx.Done():
			return fmt.Errorf("node %s: feature discovery has not labelled it: %w", n.Name, context.Cause(ctx))
		}
		if n.real.exporter != nil {
			if err := n.real.exporter.wait(ctx); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
		}
	}
	return nil
}

// Names returns the names of the nodes.
func (m *Manager) Names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]string, 0, len(m.nodes))
	for name := range m.nodes {
		out = append(out, name)
	}
	return out
}

// SetFault puts a fault on a node; the empty text takes all faults away.
func (m *Manager) SetFault(ctx context.Context, name, text string) error {
	return SetFault(ctx, m.client, name, text)
}

// SetFault is Manager.SetFault for those who only have a client.
func SetFault(ctx context.Context, client kubernetes.Interface, name, text string) error {
	f, err := fault.Parse(text)
	if err != nil {
		return err
	}
	value := "null"
	if text := f.String(); text != "" {
		value = fmt.Sprintf("%q", text)
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, FaultAnnotation, value)
	if _, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("fault of node %s: %w", name, err)
	}
	return nil
}

// nextAddress returns a pod address from the range set aside for benchmarks, which nobody routes.
func (m *Manager) nextAddress() string {
	i := m.addresses.Add(1)
	return fmt.Sprintf("198.18.%d.%d", i/250%250, i%250+1)
}

// podsOf returns the pods bound to a node.
func (m *Manager) podsOf(name string) ([]*corev1.Pod, error) {
	objs, err := m.pods.GetIndexer().ByIndex(byNode, name)
	if err != nil {
		return nil, err
	}
	out := make([]*corev1.Pod, 0, len(objs))
	for _, o := range objs {
		p, ok := o.(*corev1.Pod)
		if !ok {
			return nil, errors.New("pod informer holds something else")
		}
		out = append(out, p)
	}
	return out, nil
}

// Metrics serves what agent and feature discovery of each node count, at /<node>.
func (m *Manager) Metrics() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{node}", func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		n := m.nodes[r.PathValue("node")]
		m.mu.Unlock()
		if n == nil || n.real == nil {
			http.NotFound(w, r)
			return
		}
		promhttp.HandlerFor(n.real.metrics, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})
	return mux
}
