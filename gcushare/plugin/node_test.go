package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/deviceplugin/kubelet/checkpoint"
	"github.com/topscloud/topscloud/deviceplugin/kubelet/kubelettest"
	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/gcushare/plugin"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

const (
	nodeName = "n1"
	memory   = "enflame.com/gcu-memory"
	slice    = "enflame.com/shared-gcu"
	whole    = "enflame.com/gcu"
	cardMiB  = 16384 // 16 units of 1 GiB, 16 slices
)

// api is the API server's pods, and a cache of them that a test may hold back.
type api struct {
	mu    sync.Mutex
	pods  map[types.UID]*v1.Pod
	cache map[types.UID]*v1.Pod
	down  bool
	reads int
}

func (p *api) Cached(uid types.UID) *v1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cache[uid]
}

func (p *api) Read(_ context.Context, uid types.UID, namespace, name string) (*v1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads++
	if p.down {
		return nil, errors.New("the API server is away")
	}
	for _, pod := range p.pods {
		if pod.UID == uid || uid == "" && pod.Namespace == namespace && pod.Name == name {
			return pod, nil
		}
	}
	return nil, apierrors.NewNotFound(v1.Resource("pods"), string(uid))
}

func (p *api) put(pod *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pods[pod.UID] = pod
	p.cache[pod.UID] = pod
}

func (p *api) remove(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pods, uid)
	delete(p.cache, uid)
}

// node is one node: an imitated kubelet, the real agent code over real sockets, and the API's pods.
type node struct {
	t       *testing.T
	root    string
	kubelet *kubelettest.Kubelet
	api     *api
	machine plugin.Machine
	devices map[share.Kind]*kubelet.Devices

	arbiter *plugin.Arbiter
	stop    func()

	// killAt ends the agent at a step; empty never.
	killAt string

	mu       sync.Mutex
	assigned []types.UID
	refused  []*plugin.Refusal
}

// killable is a plugin whose process may die in a call: the call fails, and so does every later one.
type killable struct {
	kubelet.Plugin
	dead *atomic.Bool
}

var errKilled = errors.New("the agent was killed")

func (k *killable) guard(err *error) {
	switch r := recover(); r {
	case nil:
	case errKilled:
		k.dead.Store(true)
		*err = errKilled
	default:
		panic(r)
	}
}

func (k *killable) Allocate(ctx context.Context, ids []string) (out *pluginapi.ContainerAllocateResponse, err error) {
	if k.dead.Load() {
		return nil, errKilled
	}
	defer k.guard(&err)
	return k.Plugin.Allocate(ctx, ids)
}

func (k *killable) PreStart(ctx context.Context, ids []string) (err error) {
	if k.dead.Load() {
		return errKilled
	}
	defer k.guard(&err)
	return k.Plugin.PreStart(ctx, ids)
}

func newNode(t *testing.T, cards int) *node {
	t.Helper()
	n := &node{
		t: t, root: kubelettest.Dir(t), api: &api{pods: map[types.UID]*v1.Pod{}, cache: map[types.UID]*v1.Pod{}},
		machine: plugin.Machine{UnitMiB: 1024, SliceCount: 16}, devices: map[share.Kind]*kubelet.Devices{},
	}
	for i := range cards {
		n.machine.Devices = append(n.machine.Devices, eflib.Device{
			Minor: i, UUID: fmt.Sprintf("GCU-%c", 'a'+i), MemoryMiB: cardMiB, Node: fmt.Sprintf("/dev/gcu%d", i), Major: 240, DevMinor: uint32(i),
			Health: eflib.Health{State: eflib.Healthy},
		})
	}
	for kind := share.Kind(0); kind < share.Kinds; kind++ {
		if kind == share.Alias {
			continue // the names have none
		}
		per := 16
		if kind == share.Whole {
			per = 1
		}
		var list []kubelet.Device
		for i := range cards * per {
			list = append(list, kubelet.Device{ID: fmt.Sprintf("u%04d", i), Healthy: true, NUMA: -1})
		}
		n.devices[kind] = &kubelet.Devices{}
		n.devices[kind].Set(list)
	}
	n.kubelet = kubelettest.New(t, n.root)
	n.startAgent()
	t.Cleanup(func() { n.stop() })
	return n
}

func (n *node) book() string   { return filepath.Join(n.root, "book.json") }
func (n *node) cdiDir() string { return filepath.Join(n.root, "cdi") }

// startAgent does what the agent does: open, restore, register.
func (n *node) startAgent() {
	n.t.Helper()
	list, err := kubelet.NewPodResources(n.kubelet.PodResourcesSocket())
	if err != nil {
		n.t.Fatal(err)
	}
	reader := checkpoint.NewReader(n.kubelet.CheckpointPath())
	a, err := plugin.Open(plugin.Options{
		Names: contract.Default(), Node: nodeName, Machine: func() plugin.Machine { return n.machine }, Pods: n.api,
		Identities:  &kubelet.Identifier{Checkpoints: reader, Pods: list},
		Checkpoints: reader, BookPath: n.book(), CDIDir: n.cdiDir(),
		Assigned: func(_ context.Context, pod *v1.Pod) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.assigned = append(n.assigned, pod.UID)
		},
		Refused: func(_ context.Context, r *plugin.Refusal) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.refused = append(n.refused, r)
		},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	if err := a.Restore(n.t.Context()); err != nil {
		n.t.Logf("restore: %v", err)
	}
	n.arbiter = a
	dead := &atomic.Bool{}
	plugin.OnStep(a, func(step string) {
		n.mu.Lock()
		kill := n.killAt == step
		if kill {
			n.killAt = ""
		}
		n.mu.Unlock()
		if kill {
			panic(errKilled)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for kind, devices := range n.devices {
		p := a.Plugin(kind)
		s, err := kubelet.New(kubelet.Options{
			Resource: p.Resource(), Dir: n.kubelet.PluginDir(), Prefix: "enflamegcushare", Instance: fmt.Sprintf("%s-%d", kind, time.Now().UnixNano()),
			Plugin: &killable{p, dead}, Devices: devices, Settle: 20 * time.Millisecond,
		})
		if err != nil {
			n.t.Fatal(err)
		}
		wg.Go(func() {
			if err := s.Serve(ctx); err != nil {
				n.t.Error(err)
			}
		})
	}
	var once sync.Once
	n.stop = func() {
		once.Do(func() {
			cancel()
			wg.Wait()
			if err := errors.Join(a.Close(), list.Close()); err != nil {
				n.t.Error(err)
			}
		})
	}
	n.ready()
}

// ready waits until kubelet counts all devices.
func (n *node) ready() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), 15*time.Second)
	defer cancel()
	for kind, devices := range n.devices {
		list, _ := devices.Get()
		if err := n.kubelet.WaitAllocatable(ctx, kind.Resource(contract.Default()), len(list)); err != nil {
			n.t.Fatal(err)
		}
	}
}

func (n *node) restartAgent() {
	n.t.Helper()
	n.stop()
	n.startAgent()
}

type ask struct {
	container, resource string
	amount              int64
}

// newPod makes a pod bound to the node; containers that ask for nothing have amount 0.
func newPod(name string, asks ...ask) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name), Annotations: map[string]string{}},
		Spec:       v1.PodSpec{NodeName: nodeName},
	}
	for _, a := range asks {
		c := v1.Container{Name: a.container}
		if a.amount > 0 {
			c.Resources.Limits = v1.ResourceList{v1.ResourceName(a.resource): *resource.NewQuantity(a.amount, resource.DecimalSI)}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

// given is a record's entry: "a:0=1024" for 1024 MiB of card 0, "a:0=1024,1=1024", "a:0=whole".
func record(t *testing.T, node string, entries ...string) string {
	t.Helper()
	r := contract.Allocation{Node: node}
	for _, e := range entries {
		name, list, _ := strings.Cut(e, ":")
		c := contract.ContainerAllocation{Name: name}
		for _, part := range strings.Split(list, ",") {
			card := contract.CardAllocation{MemoryMiB: cardMiB, Whole: strings.HasSuffix(part, "=whole")}
			var err error
			if card.Whole {
				_, err = fmt.Sscanf(part, "%d=whole", &card.Minor)
			} else {
				_, err = fmt.Sscanf(part, "%d=%d", &card.Minor, &card.MemoryMiB)
			}
			if err != nil {
				t.Fatal(err)
			}
			card.UUID = fmt.Sprintf("GCU-%c", 'a'+card.Minor)
			c.Cards = append(c.Cards, card)
		}
		r.Containers = append(r.Containers, c)
	}
	text, err := contract.EncodeAllocation(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// bind gives the API a pod with a record.
func (n *node) bind(pod *v1.Pod, entries ...string) *v1.Pod {
	n.t.Helper()
	if len(entries) > 0 {
		pod.Annotations[contract.Default().AllocationKey] = record(n.t, nodeName, entries...)
	}
	n.api.put(pod)
	return pod
}

func (n *node) admit(pods ...*v1.Pod) {
	n.t.Helper()
	for _, p := range pods {
		if err := n.kubelet.Admit(p); err != nil {
			n.t.Fatalf("%s: %v", p.Name, err)
		}
	}
}

// start starts a container and returns what its environment says: "0 1024", "0,1 512,512"; an error as
// "refused: <cause>".
func (n *node) start(pod *v1.Pod, container string) string {
	n.t.Helper()
	n.mu.Lock()
	before := len(n.refused)
	n.mu.Unlock()
	began := time.Now()
	run, err := n.kubelet.Start(pod.UID, container)
	if took := time.Since(began); took > 5*time.Second {
		n.t.Errorf("start of %s took %v", pod.Name, took)
	}
	if err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.refused) == before {
			n.t.Fatalf("%s, %s: %v", pod.Name, container, err)
		}
		r := n.refused[len(n.refused)-1]
		if r.Cause != plugin.CauseIdentity && (r.Container != container || !strings.Contains(err.Error(), "container "+container)) {
			n.t.Errorf("the refusal does not name container %s: %v", container, err)
		}
		return "refused: " + string(r.Cause)
	}
	return n.seen(run.CDIDevices)
}

// seen is what an engine would put into the container.
func (n *node) seen(names []string) string {
	n.t.Helper()
	cache, err := cdi.NewCache(cdi.WithSpecDirs(n.cdiDir()), cdi.WithAutoRefresh(false))
	if err != nil {
		n.t.Fatal(err)
	}
	var out []string
	for _, name := range names {
		d := cache.GetDevice(name)
		if d == nil {
			return "unresolved"
		}
		var env []string
		for _, e := range d.ContainerEdits.Env {
			_, value, _ := strings.Cut(e, "=")
			env = append(env, value)
		}
		minors := strings.Split(env[0], ",")
		var nodes []string
		for _, dn := range d.ContainerEdits.DeviceNodes {
			nodes = append(nodes, dn.Path)
		}
		var want []string
		for _, m := range minors {
			want = append(want, "/dev/gcu"+m)
		}
		if want = append(want, "/dev/gcuctl"); !slices.Equal(nodes, want) {
			n.t.Errorf("device nodes %v, want %v", nodes, want)
		}
		out = append(out, strings.Join(env, " "))
	}
	return strings.Join(out, "; ")
}

func (n *node) wantStart(pod *v1.Pod, container, want string) {
	n.t.Helper()
	if got := n.start(pod, container); got != want {
		n.t.Errorf("container %s of %s sees %q, want %q", container, pod.Name, got, want)
	}
}

func (n *node) wasAssigned(pod *v1.Pod) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.assigned, pod.UID)
}

func (n *node) cdiFiles() []string {
	n.t.Helper()
	entries, err := os.ReadDir(n.cdiDir())
	if err != nil {
		n.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
