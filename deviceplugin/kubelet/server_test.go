package kubelet_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/deviceplugin/kubelet/kubelettest"
)

const res = "enflame.com/gcu-memory"

// plugin answers each Allocate with a new CDI name.
type plugin struct {
	mu       sync.Mutex
	tickets  int
	started  [][]string
	allocate chan struct{} // if set, Allocate waits for it
	entered  chan struct{}
	fail     error
}

func (p *plugin) Allocate(ctx context.Context, ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	if p.allocate != nil {
		close(p.entered)
		select {
		case <-p.allocate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tickets++
	return &pluginapi.ContainerAllocateResponse{CdiDevices: []*pluginapi.CDIDevice{{Name: fmt.Sprintf("enflame.com/gcushare=t-%d", p.tickets)}}}, nil
}

func (p *plugin) PreStart(_ context.Context, ids []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = append(p.started, ids)
	return p.fail
}

func devices(n int, healthy bool) []kubelet.Device {
	var out []kubelet.Device
	for i := range n {
		out = append(out, kubelet.Device{ID: fmt.Sprintf("u%03d", i), Healthy: healthy, NUMA: -1})
	}
	return out
}

// serve runs a server until the returned function is called, which waits for its end.
func serve(t *testing.T, o kubelet.Options) (*kubelet.Server, func()) {
	t.Helper()
	s, err := kubelet.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Serve() = %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return s, stop
}

func options(k *kubelettest.Kubelet, instance string, p kubelet.Plugin, d *kubelet.Devices) kubelet.Options {
	return kubelet.Options{Resource: res, Dir: k.PluginDir(), Prefix: "enflamegcushare", Instance: instance, Plugin: p, Devices: d}
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func allocatable(t *testing.T, k *kubelettest.Kubelet, want int) {
	t.Helper()
	if err := k.WaitAllocatable(within(t, 15*time.Second), res, want); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !check(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func sockets(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "enflame") {
			out = append(out, e.Name())
		}
	}
	return out
}

func pod(name string, limits map[string]int64) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)}}
	var names []string
	for c := range limits {
		names = append(names, c)
	}
	slices.Sort(names)
	for _, c := range names {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: c, Resources: v1.ResourceRequirements{
			Limits: v1.ResourceList{res: *resource.NewQuantity(limits[c], resource.DecimalSI)},
		}})
	}
	return p
}

func TestServe(t *testing.T) {
	t.Parallel()
	k := kubelettest.New(t, kubelettest.Dir(t))
	p, d := &plugin{}, &kubelet.Devices{}
	d.Set(devices(4, true))
	s, stop := serve(t, options(k, "a", p, d))
	allocatable(t, k, 4)
	eventually(t, "ready", func() bool { return s.Ready() == nil })

	one := pod("one", map[string]int64{"c": 3})
	if err := k.Admit(one); err != nil {
		t.Fatal(err)
	}
	run, err := k.Start(one.UID, "c")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(run.CDIDevices, []string{"enflame.com/gcushare=t-1"}) {
		t.Errorf("CDI devices %v", run.CDIDevices)
	}
	var refused *kubelettest.AdmissionError
	if err := k.Admit(pod("two", map[string]int64{"c": 2})); !errors.As(err, &refused) {
		t.Errorf("two devices of one free: %v", err)
	}
	p.fail = errors.New("not yet")
	if _, err := k.Start(one.UID, "c"); err == nil || !strings.Contains(err.Error(), "not yet") {
		t.Errorf("Start() = %v, want the plugin's reason", err)
	}
	stop()
	if got := sockets(t, k.PluginDir()); len(got) != 0 {
		t.Errorf("sockets left: %v", got)
	}
	if s.Ready() == nil {
		t.Error("ready after the end")
	}
	eventually(t, "kubelet sees the end", func() bool { return k.Allocatable(res) == 0 })
}

// TestLevel is case 15: the first view is not the last, an event that comes twice does not undo itself,
// and nothing is sent when nothing changed.
func TestLevel(t *testing.T) {
	t.Parallel()
	k := kubelettest.New(t, kubelettest.Dir(t))
	d := &kubelet.Devices{}
	d.Set(devices(4, false))
	serve(t, options(k, "a", &plugin{}, d))
	eventually(t, "four unhealthy", func() bool { return k.Capacity(res) == 4 && k.Allocatable(res) == 0 })
	d.Set(devices(4, true))
	allocatable(t, k, 4)

	bad := devices(4, true)
	bad[2].Healthy = false
	lists := k.Lists(res)
	if !d.Set(bad) || d.Set(slices.Clone(bad)) {
		t.Error("the first report changes something, the second does not")
	}
	allocatable(t, k, 3)
	if got := k.Lists(res) - lists; got != 1 {
		t.Errorf("%d lists for one change", got)
	}
	for range 100 { // bad, good, bad, faster than they can be sent
		d.Set(devices(4, true))
		d.Set(bad)
	}
	d.Set(devices(6, true)) // cards that appear come the same way
	allocatable(t, k, 6)
	lists = k.Lists(res)
	d.Set(slices.Clone(devices(6, true)))
	d.Set(devices(5, true))
	allocatable(t, k, 5)
	if got := k.Lists(res) - lists; got != 1 {
		t.Errorf("%d lists for one change", got)
	}
}

// TestRollingUpdate is the first half of case 19: the new agent registers, then the old one stops.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	k := kubelettest.New(t, kubelettest.Dir(t))
	d := &kubelet.Devices{}
	d.Set(devices(8, true))
	_, stopOld := serve(t, options(k, "old", &plugin{}, d))
	allocatable(t, k, 8)
	serve(t, options(k, "new", &plugin{}, d))
	eventually(t, "both stream", func() bool { return k.Streams(res) == 2 })
	dropped := make(chan bool)
	halt := make(chan struct{})
	go func() {
		low := false
		for {
			select {
			case <-halt:
				dropped <- low
				return
			default:
				low = low || k.Allocatable(res) != 8
				runtime.Gosched()
			}
		}
	}()
	stopOld()
	eventually(t, "one stream", func() bool { return k.Streams(res) == 1 })
	close(halt)
	if <-dropped {
		t.Error("allocatable dropped during the update")
	}
	if got := sockets(t, k.PluginDir()); !slices.Equal(got, []string{"enflamegcushare-new.sock"}) {
		t.Errorf("sockets %v", got)
	}
	if err := k.Admit(pod("after", map[string]int64{"c": 8})); err != nil {
		t.Error(err)
	}
}

// TestOthersSocketStays: what is at the path when the server ends may be somebody else's.
func TestOthersSocketStays(t *testing.T) {
	t.Parallel()
	k := kubelettest.New(t, kubelettest.Dir(t))
	d := &kubelet.Devices{}
	d.Set(devices(1, true))
	_, stop := serve(t, options(k, "a", &plugin{}, d))
	allocatable(t, k, 1)
	path := filepath.Join(k.PluginDir(), "enflamegcushare-a.sock")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	stop()
	if got := sockets(t, k.PluginDir()); len(got) != 1 {
		t.Errorf("sockets %v, want the other's", got)
	}
}

// TestKubeletRestarts is the second half of case 19: the folder is wiped and kubelet's socket comes
// twice within 200 ms, twenty times.
func TestKubeletRestarts(t *testing.T) {
	k := kubelettest.New(t, kubelettest.Dir(t))
	p, d := &plugin{}, &kubelet.Devices{}
	d.Set(devices(8, true))
	var mu sync.Mutex
	events := map[kubelet.EventKind]int{}
	o := options(k, "a", p, d)
	o.Observe = func(e kubelet.Event) {
		mu.Lock()
		defer mu.Unlock()
		events[e.Kind]++
	}
	s, _ := serve(t, o)
	allocatable(t, k, 8)
	before := goroutines()
	const restarts = 20
	for range restarts {
		k.Down()
		first, err := net.Listen("unix", filepath.Join(k.PluginDir(), "kubelet.sock"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond) // the time between the two is the case's input
		first.Close()
		if err := k.Up(); err != nil {
			t.Fatal(err)
		}
		allocatable(t, k, 8)
		// Kubelet may listen before its answer to the registration has arrived.
		eventually(t, "ready", func() bool { return s.Ready() == nil })
		if r, s := k.Registrations(res), k.Streams(res); r != 1 || s != 1 {
			t.Fatalf("%d registrations and %d streams after a restart, want one each", r, s)
		}
	}
	eventually(t, "as many goroutines as before", func() bool { return goroutines() <= before })
	if got := sockets(t, k.PluginDir()); len(got) != 1 {
		t.Errorf("sockets %v, want one", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if events[kubelet.Registered] != restarts+1 || events[kubelet.RegisterFailed] != 0 {
		t.Errorf("events %v, want %d registrations and no failure", events, restarts+1)
	}
}

func goroutines() int {
	runtime.GC()
	return runtime.NumGoroutine()
}

// TestKubeletComesLater: the agent may start first, and in a folder that is made later.
func TestKubeletComesLater(t *testing.T) {
	t.Parallel()
	root := kubelettest.Dir(t)
	d := &kubelet.Devices{}
	d.Set(devices(2, true))
	s, _ := serve(t, kubelet.Options{
		Resource: res, Dir: filepath.Join(root, "device-plugins"), Prefix: "enflame", Instance: "a", Plugin: &plugin{}, Devices: d,
	})
	if s.Ready() == nil {
		t.Error("ready without kubelet")
	}
	allocatable(t, kubelettest.New(t, root), 2)
}

// TestAllocateIsFinished: a call that runs when the agent is told to stop still gets its answer.
func TestAllocateIsFinished(t *testing.T) {
	t.Parallel()
	k := kubelettest.New(t, kubelettest.Dir(t))
	p := &plugin{allocate: make(chan struct{}), entered: make(chan struct{})}
	d := &kubelet.Devices{}
	d.Set(devices(2, true))
	_, stop := serve(t, options(k, "a", p, d))
	allocatable(t, k, 2)
	admitted := make(chan error, 1)
	go func() { admitted <- k.Admit(pod("one", map[string]int64{"c": 1})) }()
	<-p.entered
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Error("stopped before the answer")
	case <-time.After(50 * time.Millisecond):
	}
	close(p.allocate)
	if err := <-admitted; err != nil {
		t.Error(err)
	}
	<-stopped
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := kubelet.Options{Resource: res, Dir: "/d", Prefix: "p", Instance: "i", Plugin: &plugin{}, Devices: &kubelet.Devices{}}
	tests := map[string]func(*kubelet.Options){
		"no resource":         func(o *kubelet.Options) { o.Resource = "" },
		"a relative folder":   func(o *kubelet.Options) { o.Dir = "d" },
		"a path for a prefix": func(o *kubelet.Options) { o.Prefix = "../p" },
		"no plugin":           func(o *kubelet.Options) { o.Plugin = nil },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := good
			change(&o)
			if _, err := kubelet.New(o); err == nil {
				t.Error("accepted")
			}
		})
	}
}
