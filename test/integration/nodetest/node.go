package nodetest

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/deviceplugin/agent"
	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/deviceplugin/kubelet/kubelettest"
	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/internal/contract"
)

// patience bounds every wait; nothing here takes a tenth of it on an idle machine.
const patience = 60 * time.Second

// The resources of Names.
const (
	Memory = "enflame.com/gcu-memory"
	Slice  = "enflame.com/shared-gcu"
	Whole  = "enflame.com/gcu"
)

// Names are the names that the agent has unless Options.Change gives it others.
var Names = contract.Default()

// Options of a Node.
type Options struct {
	// Machine is one of sim.Presets; t20x4, four cards of 32 GiB, when empty.
	Machine string
	// Change edits the agent's options at each start. It may be nil.
	Change func(*agent.Options)
	// Wrap stands between the agent and the API server. It may be nil.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Node is a node: its Node object, an imitated kubelet, the real agent.
type Node struct {
	t       testing.TB
	o       Options
	machine string

	Name      string
	Namespace string
	// Root is a folder of the node's own.
	Root    string
	Kubelet *kubelettest.Kubelet

	// Agent is the agent that runs, and Stop ends it; it may be called again.
	Agent *agent.Agent
	Stop  func()
}

// New makes a node and starts its agent.
func New(t testing.TB, o Options) *Node {
	t.Helper()
	if o.Machine == "" {
		o.Machine = "t20x4"
	}
	n := &Node{t: t, o: o, machine: o.Machine, Name: "n-" + rand.String(6), Root: kubelettest.Dir(t)}
	n.Namespace = "t-" + n.Name
	ctx := t.Context()
	if _, err := Admin.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{Names.SharingLabel: "true"}}}
	if _, err := Admin.CoreV1().Nodes().Create(ctx, object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.Kubelet = kubelettest.New(t, n.Root)
	t.Cleanup(n.clean)
	n.Start()
	return n
}

func (n *Node) clean() {
	if n.Stop != nil {
		n.Stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	zero := int64(0)
	if err := Admin.CoreV1().Pods(n.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{}); err != nil {
		n.t.Error(err)
	}
	if err := Admin.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		n.t.Error(err)
	}
}

// BookSocket is where the agent tells who holds what.
func (n *Node) BookSocket() string { return filepath.Join(n.Root, "book.sock") }

// HostRoot is the root of the node's host.
func (n *Node) HostRoot() string { return filepath.Join(n.Root, "host") }

// ControlFile has the faults of the node's machine.
func (n *Node) ControlFile() string { return filepath.Join(n.Root, "faults") }

// CDIDir is where tickets are.
func (n *Node) CDIDir() string { return filepath.Join(n.Root, "cdi") }

// Spawn starts one agent process beside whatever runs.
func (n *Node) Spawn(instance string) (*agent.Agent, func()) {
	n.t.Helper()
	config, err := Cluster.ConfigForAgent(n.t.Context(), n.Name)
	if err != nil {
		n.t.Fatal(err)
	}
	if n.o.Wrap != nil {
		config.Wrap(n.o.Wrap)
	}
	cards, err := source.Open(source.Options{
		Source: source.Sim, Machine: n.machine, Node: n.Name, ControlFile: n.ControlFile(), Interval: 20 * time.Millisecond,
	})
	if err != nil {
		n.t.Fatal(err)
	}
	o := agent.Options{
		Node: n.Name, Client: kubernetes.NewForConfigOrDie(config), Source: cards, Instance: instance,
		PluginDir: n.Kubelet.PluginDir(), PodResources: n.Kubelet.PodResourcesSocket(),
		CDIDir: n.CDIDir(), StateDir: filepath.Join(n.Root, "state"), BookSocket: n.BookSocket(), HostRoot: n.HostRoot(),
		HealthInterval: 20 * time.Millisecond, NodeInterval: 50 * time.Millisecond, Settle: 20 * time.Millisecond,
		SliceCount: 16, Health: health.Options{Thresholds: health.Thresholds{Probation: 50 * time.Millisecond}},
	}
	if n.o.Change != nil {
		n.o.Change(&o)
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

// Start starts the agent and waits until kubelet listens to it.
func (n *Node) Start() {
	n.t.Helper()
	a, stop := n.Spawn("a-" + rand.String(4))
	stopped := false
	n.Agent = a
	n.Stop = func() {
		if !stopped {
			stopped = true
			stop()
		}
	}
	n.Until("the agent is ready", func(context.Context) error { return a.Ready() })
}

// Restart stops the agent and starts another.
func (n *Node) Restart() {
	n.t.Helper()
	n.Stop()
	n.Start()
}
