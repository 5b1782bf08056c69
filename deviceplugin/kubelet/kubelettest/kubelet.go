package kubelettest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/topscloud/topscloud/deviceplugin/kubelet/checkpoint"
)

// Kubelet is an imitation of one kubelet. All methods are safe for concurrent use.
type Kubelet struct {
	root string

	// admitting is held while pods are admitted: kubelet does that in one goroutine.
	admitting sync.Mutex
	// running counts goroutines and open connections' owners.
	running sync.WaitGroup

	// mu guards the fields below. It is not held during calls to plugins.
	mu         sync.Mutex
	registry   *grpc.Server // nil while down
	resources  *grpc.Server
	clients    map[string][]*client
	store      map[string]map[string]*endpoint // resource, socket
	endpoints  map[string]*endpoint            // the one in charge of each resource
	devices    map[string]map[string]*pluginapi.Device
	healthy    map[string]sets.Set[string]
	allocated  map[string]sets.Set[string]
	held       map[types.UID]map[string]map[string]*allocation // pod, container, resource
	reuse      map[types.UID]map[string]sets.Set[string]
	pods       []*podState // active ones
	registered map[string]int
	sent       map[string]int
	// ready is false while a restarted kubelet admits the pods it had.
	ready bool
	// writing is held while the checkpoint is written.
	writing sync.Mutex
}

type podState struct {
	pod     *v1.Pod
	running sets.Set[string] // containers
}

// allocation is what a container has of a resource.
type allocation struct {
	ids      checkpoint.DevicesPerNUMA
	response *pluginapi.ContainerAllocateResponse
}

func (a *allocation) set() sets.Set[string] {
	out := sets.New[string]()
	for _, ids := range a.ids {
		out.Insert(ids...)
	}
	return out
}

// Dir makes a folder with a path short enough for sockets below it, removed after the test.
func Dir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// New starts a kubelet in dir for a test, and stops it after the test.
func New(t testing.TB, dir string) *Kubelet {
	t.Helper()
	k, err := Run(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Down)
	return k
}

// Run starts a kubelet whose folders are below root: device-plugins and pod-resources.
func Run(root string) (*Kubelet, error) {
	k := &Kubelet{root: root, held: map[types.UID]map[string]map[string]*allocation{}}
	for _, dir := range []string{k.PluginDir(), filepath.Dir(k.PodResourcesSocket())} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, err
		}
	}
	if err := k.Up(); err != nil {
		return nil, err
	}
	return k, nil
}

// PluginDir is the device-plugins folder.
func (k *Kubelet) PluginDir() string { return filepath.Join(k.root, "device-plugins") }

// PodResourcesSocket is the path of the pod-resources socket.
func (k *Kubelet) PodResourcesSocket() string {
	return filepath.Join(k.root, "pod-resources", "kubelet.sock")
}

// CheckpointPath is the path of the checkpoint.
func (k *Kubelet) CheckpointPath() string { return filepath.Join(k.PluginDir(), checkpoint.FileName) }

// Restart is Down and Up.
func (k *Kubelet) Restart() error {
	k.Down()
	return k.Up()
}

// Down stops the process: streams end and its sockets go. Containers run on.
func (k *Kubelet) Down() {
	k.mu.Lock()
	registry, resources := k.registry, k.resources
	k.registry, k.resources = nil, nil
	k.mu.Unlock()
	if registry == nil {
		return
	}
	registry.Stop() // no client is added from here on
	resources.Stop()
	k.mu.Lock()
	var clients []*client
	for _, list := range k.clients {
		clients = append(clients, list...)
	}
	k.mu.Unlock()
	for _, c := range clients {
		k.disconnect(c)
	}
	k.running.Wait()
}

// Reboot stops kubelet and every container.
func (k *Kubelet) Reboot() error {
	k.Down()
	k.mu.Lock()
	for _, p := range k.pods {
		p.running = sets.New[string]()
	}
	k.mu.Unlock()
	return k.Up()
}

// Up starts the process: it reads the checkpoint, removes all sockets, opens its own and admits the pods
// it had. Pods that fail that are gone from it afterwards.
func (k *Kubelet) Up() error {
	k.admitting.Lock()
	defer k.admitting.Unlock()
	if err := k.load(); err != nil {
		return err
	}
	if err := removeSockets(k.PluginDir()); err != nil {
		return err
	}
	if err := k.serve(); err != nil {
		return err
	}
	k.mu.Lock()
	pods := slices.Clone(k.pods)
	k.mu.Unlock()
	for _, p := range pods {
		if err := k.admitPod(p); err != nil {
			k.drop(p.pod.UID)
		}
	}
	k.mu.Lock()
	k.ready = true
	k.mu.Unlock()
	return nil
}

// load forgets everything and takes in the checkpoint.
func (k *Kubelet) load() error {
	c, err := checkpoint.NewReader(k.CheckpointPath()).Read()
	if err != nil && !checkpoint.Missing(err) {
		return fmt.Errorf("load: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ready = false
	k.clients = map[string][]*client{}
	k.store = map[string]map[string]*endpoint{}
	k.endpoints = map[string]*endpoint{}
	k.devices = map[string]map[string]*pluginapi.Device{}
	k.healthy = map[string]sets.Set[string]{}
	k.reuse = map[types.UID]map[string]sets.Set[string]{}
	k.registered = map[string]int{}
	k.sent = map[string]int{}
	before := k.held
	k.held = map[types.UID]map[string]map[string]*allocation{}
	if c == nil {
		c = &checkpoint.Checkpoint{}
	}
	for _, e := range c.Entries {
		if e.Err != nil {
			continue
		}
		ids := checkpoint.DevicesPerNUMA{-1: e.IDs}
		// What was in memory has the same IDs and knows their NUMA nodes.
		if a := before[types.UID(e.PodUID)][e.Container][e.Resource]; a != nil {
			ids = a.ids
		}
		k.putLocked(types.UID(e.PodUID), e.Container, e.Resource, &allocation{ids: ids, response: e.Response})
	}
	k.allocated = k.heldLocked()
	for resource := range c.Registered {
		k.healthy[resource] = sets.New[string]()
		k.endpoints[resource] = &endpoint{stopped: true}
	}
	return nil
}

func (k *Kubelet) serve() error {
	registry, err := net.Listen("unix", filepath.Join(k.PluginDir(), filepath.Base(pluginapi.KubeletSocket)))
	if err != nil {
		return err
	}
	path := k.PodResourcesSocket()
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, registry.Close())
	}
	resources, err := net.Listen("unix", path)
	if err != nil {
		return errors.Join(err, registry.Close())
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.registry = grpc.NewServer(grpc.WaitForHandlers(true))
	pluginapi.RegisterRegistrationServer(k.registry, &registrar{kubelet: k})
	k.resources = grpc.NewServer(grpc.WaitForHandlers(true), grpc.UnaryInterceptor(limited()))
	podresourcesapi.RegisterPodResourcesListerServer(k.resources, &lister{kubelet: k})
	for server, listener := range map[*grpc.Server]net.Listener{k.registry: registry, k.resources: resources} {
		k.running.Go(func() { _ = server.Serve(listener) }) // ends with Stop
	}
	return nil
}

func removeSockets(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type()&os.ModeSocket == 0 {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Allocatable is what kubelet offers of a resource: its healthy IDs, held ones among them.
func (k *Kubelet) Allocatable(resource string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.healthy[resource].Len()
}

// Healthy says whether kubelet counts an ID as healthy.
func (k *Kubelet) Healthy(resource, id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.healthy[resource].Has(id)
}

// Capacity counts the unhealthy IDs too.
func (k *Kubelet) Capacity(resource string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.devices[resource])
}

// Registrations counts the registrations of a resource that were accepted since the last start.
func (k *Kubelet) Registrations(resource string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.registered[resource]
}

// Streams counts the open streams of a resource.
func (k *Kubelet) Streams(resource string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.store[resource])
}

// Lists counts the device lists received of a resource since the last start.
func (k *Kubelet) Lists(resource string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sent[resource]
}

// Holds returns the IDs a container holds of a resource, sorted.
func (k *Kubelet) Holds(pod types.UID, container, resource string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.held[pod][container][resource]
	if a == nil {
		return nil
	}
	return sets.List(a.set())
}

// WaitAllocatable waits until a resource has so many healthy IDs.
func (k *Kubelet) WaitAllocatable(ctx context.Context, resource string, want int) error {
	return poll(ctx, func() error {
		if got := k.Allocatable(resource); got != want {
			return fmt.Errorf("resource %s: %d allocatable, want %d", resource, got, want)
		}
		return nil
	})
}
