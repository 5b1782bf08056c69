package realnode

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/sandbox/binaries"
	"github.com/topscloud/topscloud/sandbox/process"
)

// Times of starting and stopping.
const (
	readyTimeout = 2 * time.Minute
	stopGrace    = 10 * time.Second
)

// Options of Start.
type Options struct {
	// Name is the node's name.
	Name string
	// Sandbox is the control plane, with its controller manager.
	Sandbox *sandbox.Sandbox
	// Binaries come from binaries.EnsureNode; the zero value calls it.
	Binaries binaries.Set
	// Dir is the node's folder, made by Start and removed with all it holds; empty makes one. Sockets lie
	// in it, so its path has to be short.
	Dir string
	// Machine is what the node's host root shows; nil shows nothing.
	Machine *sim.Machine
	// Kubelet are fields of KubeletConfiguration that go over those of this package.
	Kubelet map[string]any
	// KubeletArgs are further flags of kubelet.
	KubeletArgs []string
	// NRI switches containerd's node resource interface on.
	NRI bool
	// Log gets one line per step; nil drops them.
	Log io.Writer
}

// Node is a running node. Its methods are for one goroutine.
type Node struct {
	o          Options
	layout     layout
	state      *state
	lock       io.Closer
	kubeconfig string
	healthPort int
	subnet     subnet

	engine, kubelet *process.Process
	conn            *grpc.ClientConn
	runtime         runtimeapi.RuntimeServiceClient
	images          runtimeapi.ImageServiceClient
}

// Start brings up a node and returns when it is Ready. The caller must Stop it; ctx bounds the start only.
func Start(ctx context.Context, o Options) (*Node, error) {
	if o.Name == "" || o.Sandbox == nil {
		return nil, errors.New("real node: name and sandbox must be set")
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if err := Check(); err != nil {
		return nil, err
	}
	if o.Binaries.EngineDir() == "" {
		set, err := binaries.EnsureNode(ctx, binaries.Options{Log: o.Log})
		if err != nil {
			return nil, err
		}
		o.Binaries = set
	}
	n := &Node{o: o}
	if err := n.take(ctx); err != nil {
		return nil, fmt.Errorf("real node %s: %w", o.Name, err)
	}
	if err := n.up(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("real node %s: %w", o.Name, err), n.Stop())
	}
	return n, nil
}

// take makes the machine ours and writes down what is about to be made.
func (n *Node) take(ctx context.Context) error {
	lock, err := lockMachine(ctx, n.o.Log)
	if err != nil {
		return err
	}
	err = func() error {
		if err := cleanLocked(ctx, n.o.Log); err != nil {
			return err
		}
		if err := refuseForeign(); err != nil {
			return err
		}
		key := make([]byte, 4)
		if _, err := rand.Read(key); err != nil {
			return err
		}
		dir := n.o.Dir
		if dir == "" {
			dir = filepath.Join(os.TempDir(), "rn-"+hex.EncodeToString(key))
		}
		// Mounts are found by this path, as the kernel tells it.
		parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
		if err != nil {
			return err
		}
		dir = filepath.Join(parent, filepath.Base(dir))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("the node's folder must be new: %w", err)
		}
		n.layout = layout{dir}
		if n.state, err = newState(dir, hex.EncodeToString(key)); err != nil {
			return err
		}
		return n.state.write()
	}()
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	n.lock = lock
	return nil
}

// up makes and starts everything, in order.
func (n *Node) up(ctx context.Context) error {
	l := n.layout
	for _, dir := range []string{"logs", "run", "images", "cni", "cdi", "nri", "host"} {
		if err := os.MkdirAll(l.path(dir), 0o755); err != nil {
			return err
		}
	}
	if n.state.Kept != "" {
		if err := os.Rename(pluginDir, n.state.Kept); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(pluginDir, 0o750); err != nil {
		return err
	}
	var err error
	if n.subnet, err = freeSubnet(); err != nil {
		return err
	}
	if n.o.Machine != nil {
		if err := WriteHost(l.hostRoot(), *n.o.Machine); err != nil {
			return err
		}
	}
	if err := errors.Join(makeCgroup(n.state.Cgroup), makeBridge(n.state.Bridge, n.subnet.node(), podMask)); err != nil {
		return err
	}
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"image", func(ctx context.Context) error { return n.buildImage(ctx) }},
		{containerdName, func(ctx context.Context) error {
			if err := errors.Join(n.writeEngineConfig(), n.connect()); err != nil {
				return err
			}
			return n.startEngine(ctx)
		}},
		{"image import", func(ctx context.Context) error { return n.importImage(ctx, ProbeImage, l.image("probe")) }},
		{kubeletName, func(ctx context.Context) error {
			if err := n.writeKubeletConfig(); err != nil {
				return err
			}
			return n.StartKubelet(ctx)
		}},
		{"node", n.WaitReady},
	}
	for _, s := range steps {
		start := time.Now()
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(n.o.Log, "%-24s ready in %s\n", s.name, time.Since(start).Round(100*time.Millisecond))
	}
	return nil
}

func (n *Node) buildImage(ctx context.Context) error {
	program := n.layout.path("images", "probe")
	if err := buildProbe(ctx, program); err != nil {
		return err
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	f, err := os.Create(n.layout.image("probe"))
	if err != nil {
		return err
	}
	return errors.Join(writeImage(f, ProbeImage, []imageFile{{ProbePath, text}}, "pause"), f.Close())
}

// WaitReady waits until the API says that the node is ready and pods may be bound to it.
func (n *Node) WaitReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(n.o.Sandbox.RESTConfig())
	if err != nil {
		return err
	}
	return n.until(ctx, n.kubelet, func(ctx context.Context) error {
		node, err := client.CoreV1().Nodes().Get(ctx, n.o.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, t := range node.Spec.Taints {
			return fmt.Errorf("node %s has taint %s", n.o.Name, t.Key)
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("node %s is not ready", n.o.Name)
	})
}

// RestartEngine ends containerd, as an upgrade does, and starts it again; containers run on.
func (n *Node) RestartEngine(ctx context.Context) error {
	n.engine.Stop(ctx, stopGrace)
	return n.startEngine(ctx)
}

// WipePluginDir removes all that is in kubelet's device-plugins folder, while kubelet runs.
func (n *Node) WipePluginDir() error {
	return removeMatching(pluginDir, func(string) bool { return true })
}

// Stop ends the node and makes the machine what it was.
func (n *Node) Stop() error {
	ctx := context.Background()
	if n.kubelet != nil {
		n.StopKubelet(ctx)
	}
	if n.engine != nil {
		n.removePods(ctx)
		n.engine.Stop(ctx, stopGrace)
	}
	var errs []error
	if n.conn != nil {
		errs = append(errs, n.conn.Close())
	}
	return errors.Join(append(errs, n.state.sweep(ctx), n.lock.Close())...)
}

// Name returns the node's name, Kubeconfig the path of kubelet's credentials, HostRoot the folder that stands for the
// host's root, CDIDir the folder of CDI files that containerd reads, PluginDir kubelet's device-plugins folder,
// PodResourcesSocket and EngineSocket where those answer, Scratch a folder for a test's own files.
func (n *Node) Name() string       { return n.o.Name }
func (n *Node) Kubeconfig() string { return n.kubeconfig }
func (n *Node) HostRoot() string   { return n.layout.hostRoot() }
func (n *Node) CDIDir() string     { return n.layout.cdiDir() }
func (n *Node) PluginDir() string  { return pluginDir }
func (n *Node) PodResourcesSocket() string {
	return n.layout.path("k", "pod-resources", "kubelet.sock")
}
func (n *Node) EngineSocket() string { return n.layout.engineSocket() }
func (n *Node) NRISocket() string    { return n.layout.nriSocket() }
func (n *Node) Scratch() string      { return n.layout.path("scratch") }

// LogFile returns the log of "kubelet" or "containerd".
func (n *Node) LogFile(name string) string { return n.layout.log(name) }
