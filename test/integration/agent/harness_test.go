package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
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
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/topscloud/topscloud/deviceplugin/agent"
	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/deviceplugin/kubelet/kubelettest"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
	"github.com/topscloud/topscloud/internal/contract"
)

// patience bounds every wait; nothing here takes a tenth of it on an idle machine.
const patience = 60 * time.Second

const (
	memory = "enflame.com/gcu-memory"
	slice  = "enflame.com/shared-gcu"
	whole  = "enflame.com/gcu"
)

var names = contract.Default()

// node is a node: its Node object, an imitated kubelet, the real agent.
type node struct {
	t         *testing.T
	name      string
	namespace string
	root      string
	kubelet   *kubelettest.Kubelet
	options   func(*agent.Options)
	machine   string

	agent *agent.Agent
	stop  func()
	// down makes the API server be away for the agent.
	down     atomic.Bool
	requests requests
}

// requests counts what the agent asks of the API server, as "VERB resource".
type requests struct {
	mu     sync.Mutex
	counts map[string]int
}

func (r *requests) note(q *http.Request) {
	parts := strings.Split(strings.Trim(q.URL.Path, "/"), "/")
	verb, resource := q.Method, ""
	for i, p := range parts {
		if p == "pods" || p == "nodes" || p == "events" {
			if resource = p; verb == http.MethodGet && i == len(parts)-1 {
				verb = "LIST"
				if q.URL.Query().Get("watch") != "" {
					verb = "WATCH"
				}
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	r.counts[verb+" "+resource]++
}

func (r *requests) count(what string) int { return r.all()[what] }

func (r *requests) all() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}

func (r *requests) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts = nil
}

// RoundTrip stands between the agent and the API server.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// wire lets the agent's requests through unless the API server is to be away; those that are open, like
// watches, are cut when it goes.
func (n *node) wire(rt http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		n.requests.note(r)
		if n.down.Load() {
			return nil, errors.New("the API server is away")
		}
		return rt.RoundTrip(r)
	})
}

// newNode makes a node of four cards of 32 GiB and starts its agent. change, which may be nil, edits the
// agent's options at each start.
func newNode(t *testing.T, change func(*agent.Options)) *node { return newNodeOf(t, "t20x4", change) }

func newNodeOf(t *testing.T, machine string, change func(*agent.Options)) *node {
	t.Helper()
	n := &node{t: t, name: "n-" + rand.String(6), root: kubelettest.Dir(t), options: change, machine: machine}
	n.namespace = "t-" + n.name
	ctx := t.Context()
	if _, err := admin.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{names.SharingLabel: "true"}}}
	if _, err := admin.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.kubelet = kubelettest.New(t, n.root)
	t.Cleanup(n.clean)
	n.start()
	return n
}

func (n *node) clean() {
	if n.stop != nil {
		n.stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	zero := int64(0)
	if err := admin.CoreV1().Pods(n.namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{}); err != nil {
		n.t.Error(err)
	}
	if err := admin.CoreV1().Nodes().Delete(ctx, n.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		n.t.Error(err)
	}
}

func (n *node) control() string    { return filepath.Join(n.root, "faults") }
func (n *node) bookSocket() string { return filepath.Join(n.root, "book.sock") }

func (n *node) cdiDir() string { return filepath.Join(n.root, "cdi") }

// spawn starts one agent process beside whatever runs.
func (n *node) spawn(instance string) (*agent.Agent, func()) {
	n.t.Helper()
	config, err := cluster.ConfigForAgent(n.t.Context(), n.name)
	if err != nil {
		n.t.Fatal(err)
	}
	config.Wrap(n.wire)
	cards, err := source.Open(source.Options{
		Source: source.Sim, Machine: n.machine, Node: n.name, ControlFile: n.control(), Interval: 20 * time.Millisecond,
	})
	if err != nil {
		n.t.Fatal(err)
	}
	o := agent.Options{
		Node: n.name, Client: kubernetes.NewForConfigOrDie(config), Source: cards, Instance: instance,
		PluginDir: n.kubelet.PluginDir(), PodResources: n.kubelet.PodResourcesSocket(),
		CDIDir: n.cdiDir(), StateDir: filepath.Join(n.root, "state"), BookSocket: n.bookSocket(), HostRoot: filepath.Join(n.root, "host"),
		HealthInterval: 20 * time.Millisecond, NodeInterval: 50 * time.Millisecond, Settle: 20 * time.Millisecond,
		SliceCount: 16, Health: health.Options{Thresholds: health.Thresholds{Probation: 50 * time.Millisecond}},
	}
	if n.options != nil {
		n.options(&o)
	}
	a, err := agent.New(o)
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return a, func() {
		cancel()
		if err := errors.Join(<-done, cards.Close()); err != nil {
			n.t.Error(err)
		}
	}
}

// start starts the agent and waits until kubelet listens to it.
func (n *node) start() {
	n.t.Helper()
	a, stop := n.spawn("a-" + rand.String(4))
	stopped := false
	n.agent = a
	n.stop = func() {
		if !stopped {
			stopped = true
			stop()
		}
	}
	n.until("the agent is ready", func(context.Context) error { return a.Ready() })
}

func (n *node) restart() {
	n.t.Helper()
	n.stop()
	n.start()
}

// until waits for something that comes about by itself.
func (n *node) until(what string, check func(context.Context) error) {
	n.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(n.t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		n.t.Fatalf("waiting until %s: %v", what, last)
	}
}

// allocatable waits until kubelet offers amounts of memory units, slices and whole cards.
func (n *node) allocatable(units, slices, cards int) {
	n.t.Helper()
	n.until("the allocatable amounts are right", func(context.Context) error {
		got := [3]int{n.kubelet.Allocatable(memory), n.kubelet.Allocatable(slice), n.kubelet.Allocatable(whole)}
		if want := [3]int{units, slices, cards}; got != want {
			return fmt.Errorf("memory, slices, cards %v, want %v", got, want)
		}
		return nil
	})
}

// prefers waits until the agent would have kubelet choose these whole cards: it has seen the record that waits for
// them. Kubelet chooses once for a pod, so that a test must not admit one before.
func (n *node) prefers(ids ...string) {
	n.t.Helper()
	n.until("the record is seen", func(context.Context) error {
		got, err := n.kubelet.Prefers(whole, len(ids))
		if err == nil && !slices.Equal(got, ids) {
			err = fmt.Errorf("the agent prefers %v, want %v", got, ids)
		}
		return err
	})
}

// share is what one container asks, and its cards in the record.
type container struct {
	name     string
	resource string
	amount   int64
	init     bool
	cards    []contract.CardAllocation
}

// card returns an entry of a record.
func (n *node) card(minor int, mib int64) contract.CardAllocation {
	m, err := sim.Preset(n.machine)
	if err != nil {
		n.t.Fatal(err)
	}
	c := m.ForNode(n.name).Cards[minor]
	return contract.CardAllocation{Minor: minor, UUID: c.UUID, MemoryMiB: mib, Whole: mib == c.MemoryMiB}
}

// pod makes a pod that is bound to the node, with a record where its containers have cards.
func (n *node) pod(name string, containers ...container) *v1.Pod {
	n.t.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace, Name: name}, Spec: v1.PodSpec{NodeName: n.name}}
	record := contract.Allocation{Node: n.name}
	for _, c := range containers {
		container := v1.Container{Name: c.name, Image: "none", Resources: v1.ResourceRequirements{
			Limits: v1.ResourceList{v1.ResourceName(c.resource): *resource.NewQuantity(c.amount, resource.DecimalSI)},
		}}
		if c.init {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
		} else {
			pod.Spec.Containers = append(pod.Spec.Containers, container)
		}
		if c.cards != nil {
			record.Containers = append(record.Containers, contract.ContainerAllocation{Name: c.name, Cards: c.cards})
		}
	}
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []v1.Container{{Name: "plain", Image: "none"}}
	}
	if len(record.Containers) > 0 {
		text, err := contract.EncodeAllocation(record)
		if err != nil {
			n.t.Fatal(err)
		}
		pod.Annotations = map[string]string{names.AllocationKey: text, names.AssignedKey: "false"}
	}
	return n.create(pod)
}

func (n *node) create(pod *v1.Pod) *v1.Pod {
	n.t.Helper()
	out, err := admin.CoreV1().Pods(n.namespace).Create(n.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

// run admits a pod and starts its containers in order.
func (n *node) run(pod *v1.Pod) {
	n.t.Helper()
	if err := n.kubelet.Admit(pod); err != nil {
		n.t.Fatal(err)
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		n.startContainer(pod, c.Name)
	}
}

// startContainer starts a container as kubelet does: again and again while it is refused.
func (n *node) startContainer(pod *v1.Pod, container string) *kubelettest.RunOptions {
	n.t.Helper()
	var out *kubelettest.RunOptions
	n.until("container "+container+" starts", func(context.Context) (err error) {
		out, err = n.kubelet.Start(pod.UID, container)
		return err
	})
	return out
}

// sees returns the cards that a container gets, as the engine resolves its tickets.
func (n *node) sees(pod *v1.Pod, container string) (cards, mib string) {
	n.t.Helper()
	o := n.startContainer(pod, container)
	cache, err := cdi.NewCache(cdi.WithSpecDirs(n.cdiDir()), cdi.WithAutoRefresh(false))
	if err != nil {
		n.t.Fatal(err)
	}
	for _, name := range o.CDIDevices {
		d := cache.GetDevice(name)
		if d == nil {
			n.t.Fatalf("ticket %s cannot be resolved: %v", name, cache.GetErrors())
		}
		for _, env := range d.ContainerEdits.Env {
			if v, ok := strings.CutPrefix(env, contract.EnvVisibleDevices+"="); ok {
				cards = v
			}
			if v, ok := strings.CutPrefix(env, contract.EnvUsableMemory+"="); ok {
				mib = v
			}
		}
	}
	return cards, mib
}

// remove deletes a pod from the API server and from kubelet.
func (n *node) remove(pod *v1.Pod) {
	n.t.Helper()
	n.forget(pod)
	n.kubelet.Remove(pod.UID)
}

// forget deletes a pod from the API server alone, by force.
func (n *node) forget(pod *v1.Pod) {
	n.t.Helper()
	zero := int64(0)
	if err := admin.CoreV1().Pods(n.namespace).Delete(n.t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) get(pod *v1.Pod) *v1.Pod {
	n.t.Helper()
	out, err := admin.CoreV1().Pods(n.namespace).Get(n.t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

func (n *node) object() *v1.Node {
	n.t.Helper()
	out, err := admin.CoreV1().Nodes().Get(n.t.Context(), n.name, metav1.GetOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

// condition waits until a node condition has a status, and returns its message.
func (n *node) condition(kind v1.NodeConditionType, status v1.ConditionStatus) string {
	n.t.Helper()
	var message string
	n.until(fmt.Sprintf("condition %s is %s", kind, status), func(context.Context) error {
		for _, c := range n.object().Status.Conditions {
			if c.Type == kind {
				if message = c.Message; c.Status == status {
					return nil
				}
				return fmt.Errorf("%s: %s", c.Status, c.Message)
			}
		}
		return errors.New("not there")
	})
	return message
}

// event waits for an event whose message has some words, about a pod or, with "", about the node.
func (n *node) event(uid types.UID, words string) {
	n.t.Helper()
	n.until("an event says "+words, func(ctx context.Context) error {
		list, err := admin.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var seen []string
		for _, e := range list.Items {
			if uid == "" && e.InvolvedObject.Name == n.name || uid != "" && e.InvolvedObject.UID == uid {
				if strings.Contains(e.Message, words) {
					return nil
				}
				seen = append(seen, e.Reason+": "+e.Message)
			}
		}
		return fmt.Errorf("events: %q", seen)
	})
}

// faults makes the machine have faults, and no others.
func (n *node) faults(lines ...string) {
	n.t.Helper()
	parsed, err := sim.ParseFaults(strings.Join(lines, "\n"))
	if err == nil {
		err = sim.WriteFaults(n.control(), parsed...)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// check holds the node's book to what it may never say.
func (n *node) check() {
	n.t.Helper()
	m, err := sim.Preset(n.machine)
	if err != nil {
		n.t.Fatal(err)
	}
	used, holders, exclusive := map[int]int64{}, map[int]int{}, map[int]bool{}
	for _, p := range n.agent.Book().Pods {
		for _, c := range p.Charges {
			used[c.Minor] += c.MemoryMiB
			holders[c.Minor]++
			exclusive[c.Minor] = exclusive[c.Minor] || c.Whole
		}
	}
	for _, c := range m.Cards {
		if used[c.Minor] > c.MemoryMiB || exclusive[c.Minor] && holders[c.Minor] > 1 {
			n.t.Errorf("card %d: %d holders of %d of %d MiB, whole %t", c.Minor, holders[c.Minor], used[c.Minor], c.MemoryMiB, exclusive[c.Minor])
		}
	}
}

// cgroup makes the node's kernel have, or not have, a process of a pod.
func (n *node) cgroup(pod *v1.Pod, alive bool) {
	n.t.Helper()
	dir := filepath.Join(n.root, "host/sys/fs/cgroup/kubepods/burstable", "pod"+string(pod.UID))
	err := os.RemoveAll(dir)
	if alive {
		if err = os.MkdirAll(filepath.Join(dir, "c1"), 0o755); err == nil {
			err = os.WriteFile(filepath.Join(dir, "c1/cgroup.procs"), []byte("1234\n"), 0o644)
		}
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// told waits until the agent tells the node's other programs these holdings, each "card/pod/container/MiB".
func (n *node) told(want ...string) {
	n.t.Helper()
	n.until("the holdings are told", func(ctx context.Context) error {
		book, err := nodebook.NewClient(n.bookSocket()).Get(ctx)
		if err != nil {
			return err
		}
		var got []string
		for _, h := range book.Holdings {
			got = append(got, fmt.Sprintf("%d/%s/%s/%d", h.Minor, h.Pod, h.Container, h.MemoryMiB))
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		return nil
	})
}
