package simnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/deviceplugin/agent"
	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/deviceplugin/kubelet/kubelettest"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/nfd/command"
	"github.com/topscloud/topscloud/nfd/discovery"
	"github.com/topscloud/topscloud/nfd/labels"
	"github.com/topscloud/topscloud/nfd/publish"
	discoverysource "github.com/topscloud/topscloud/nfd/source"
	"github.com/topscloud/topscloud/sandbox/simnode/fault"
)

// again is how often a node with a real agent looks at what kubelet offers.
const again = 200 * time.Millisecond

// realHost is what runs on a node (agent, feature discovery, exporter), the imitation of kubelet beside it, and their
// folder.
type realHost struct {
	kubelet   *kubelettest.Kubelet
	agent     *agent.Agent
	discovery *discovery.Discovery
	exporter  *exporter // nil where none runs
	root      string
	// closers give up the sources of cards.
	closers []func() error
	// The fields below are touched by the node's worker only.
	down   bool
	faults string
	seen   map[types.UID]map[string]Seen
	work   *workers
	// metrics are those of agent and discovery.
	metrics *prometheus.Registry
}

// startReal runs the node's programs until the manager ends. The folder is a short one: sockets have paths of at most
// 107 bytes.
func (n *node) startReal(ctx context.Context) error {
	root, err := os.MkdirTemp("", "gcun-")
	if err != nil {
		return err
	}
	r := &realHost{root: root, seen: map[types.UID]map[string]Seen{}, metrics: prometheus.NewRegistry()}
	if r.work, err = newWorkers(r.hostRoot()); err != nil {
		return errors.Join(err, os.RemoveAll(root))
	}
	if r.kubelet, err = kubelettest.Run(root); err != nil {
		return errors.Join(err, os.RemoveAll(root))
	}
	if err := errors.Join(r.makeAgent(ctx, n), r.makeDiscovery(ctx, n), r.makeExporter(n)); err != nil {
		return errors.Join(err, r.close())
	}
	n.real = r
	living := n.manager.living
	n.manager.hosts.Go(func() {
		var programs sync.WaitGroup
		programs.Go(func() {
			if err := r.agent.Run(living); err != nil {
				klog.FromContext(living).Error(err, "The agent of a simulated node ended", "node", n.Name)
			}
		})
		programs.Go(func() { r.discovery.Run(living) })
		if r.exporter != nil {
			programs.Go(func() {
				if err := r.exporter.run(living); err != nil {
					klog.FromContext(living).Error(err, "The exporter of a simulated node ended", "node", n.Name)
				}
			})
		}
		programs.Wait()
		if err := r.close(); err != nil {
			klog.FromContext(living).Error(err, "A simulated node left something behind", "node", n.Name)
		}
	})
	return nil
}

func (r *realHost) close() error {
	r.kubelet.Down()
	var errs []error
	for _, c := range r.closers {
		errs = append(errs, c())
	}
	return errors.Join(append(errs, os.RemoveAll(r.root))...)
}

func (r *realHost) makeAgent(ctx context.Context, n *node) error {
	client, err := n.manager.options.Client(ctx, n.Name, AgentAccount)
	if err != nil {
		return err
	}
	cards, err := source.Open(source.Options{
		Source: source.Sim, Machine: n.Preset, Node: n.Name, ControlFile: r.control(), Interval: time.Second,
	})
	if err != nil {
		return err
	}
	r.closers = append(r.closers, cards.Close)
	counts := agent.NewMetrics()
	if err := counts.Register(r.metrics); err != nil {
		return err
	}
	r.agent, err = agent.New(agent.Options{
		Metrics: counts,
		Names:   n.names, Node: n.Name, Client: client, Source: cards, Instance: "sim",
		PluginDir: r.kubelet.PluginDir(), PodResources: r.kubelet.PodResourcesSocket(),
		CDIDir: filepath.Join(r.root, "cdi"), StateDir: filepath.Join(r.root, "state"), HostRoot: r.hostRoot(),
		BookSocket: r.bookSocket(),
		UnitMiB:    n.Devices.MemoryUnitMiB, SliceCount: n.Devices.SliceCount,
		HealthInterval: time.Second, NodeInterval: 2 * time.Second, Settle: 20 * time.Millisecond,
		Health: health.Options{Thresholds: health.Thresholds{Probation: time.Second}},
	})
	return err
}

// makeDiscovery makes labels follow the cards within seconds, so that a fault can be watched: on a real node labels
// say only after half a minute that a card is gone.
func (r *realHost) makeDiscovery(ctx context.Context, n *node) error {
	client, err := n.manager.options.Client(ctx, n.Name, DiscoveryAccount)
	if err != nil {
		return err
	}
	cards, err := discoverysource.Open(discoverysource.Options{
		Order: []string{source.Sim}, Machine: n.Preset, Node: n.Name, ControlFile: r.control(), Interval: time.Second,
	})
	if err != nil {
		return err
	}
	r.closers = append(r.closers, cards.Close)
	counts := discovery.NewMetrics()
	if err := counts.Register(r.metrics); err != nil {
		return err
	}
	r.discovery, err = discovery.New(discovery.Options{
		Metrics: counts,
		Source:  cards, Node: n.Name, Client: client, Events: command.NewEvents(client, n.Name),
		Output:       &publish.NodeLabels{Client: client, Names: n.names, Node: n.Name},
		Labels:       labels.Options{Names: n.names},
		RemovalDelay: 2 * time.Second,
	})
	return err
}

func (r *realHost) hostRoot() string   { return filepath.Join(r.root, "host") }
func (r *realHost) bookSocket() string { return filepath.Join(r.root, "book", "book.sock") }

func (r *realHost) control() string { return filepath.Join(r.root, "faults") }

// up brings kubelet back after a stop and puts the cards' faults in force. It reports whether the agent is
// registered.
func (r *realHost) up(f fault.Set, devices []contract.NodeDevice) (ready bool, err error) {
	if r.down {
		if err := r.kubelet.Up(); err != nil {
			return false, err
		}
		r.down = false
	}
	var faults []sim.Fault
	for _, minor := range f.Failed {
		faults = append(faults, sim.Fault{Kind: "unhealthy", Minor: minor, Args: []string{"simulated", "fault:", "uncorrectable", "memory", "error"}})
	}
	for _, minor := range f.Gone {
		faults = append(faults, sim.Fault{Kind: "unplug", Minor: minor})
	}
	for _, minor := range f.Hung {
		faults = append(faults, sim.Fault{Kind: "hang", Minor: minor})
	}
	faults = append(append(faults, r.work.faults(devices)...), ring(devices)...)
	if text := fmt.Sprint(faults); text != r.faults {
		if err := sim.WriteFaults(r.control(), faults...); err != nil {
			return false, err
		}
		r.faults = text
	}
	return r.agent.Ready() == nil, nil
}

func (r *realHost) restart(reboot bool) error {
	if reboot {
		return r.kubelet.Reboot()
	}
	return r.kubelet.Restart()
}

func (r *realHost) capacity(names *contract.Names) units { return r.units(names, r.kubelet.Capacity) }
func (r *realHost) allocatable(names *contract.Names) units {
	return r.units(names, r.kubelet.Allocatable)
}

func (r *realHost) units(names *contract.Names, of func(string) int) units {
	return units{whole: int64(of(names.ResourceWhole)), memory: int64(of(names.ResourceMemory)), slices: int64(of(names.ResourceSlice))}
}

// admit decides about a pod as kubelet does: by what the Node says is allocatable, then by asking the device
// manager.
func (n *node) admit(p *corev1.Pod, obj *corev1.Node, cards *nodeCards, taken []*corev1.Pod) *refusal {
	if n.real == nil {
		return admit(p, obj, n.resources(units{}), cards, taken, n.names)
	}
	// A card list without cards makes admit look at everything else.
	plain := p.DeepCopy()
	for _, list := range [][]corev1.Container{plain.Spec.InitContainers, plain.Spec.Containers} {
		for i := range list {
			for kind := range share.Kind(share.Kinds) {
				name := corev1.ResourceName(kind.Resource(n.names))
				delete(list[i].Resources.Limits, name)
				delete(list[i].Resources.Requests, name)
			}
		}
	}
	if why := admit(plain, obj, n.resources(units{}), cards, taken, n.names); why != nil {
		return why
	}
	if !share.Asks(n.names, p) {
		return nil
	}
	need, held := podUnits(p, n.names), allocatable(units{}, taken, n.names)
	for _, r := range []struct {
		name       string
		need, held int64
	}{{n.names.ResourceWhole, need.whole, held.whole}, {n.names.ResourceMemory, need.memory, held.memory}, {n.names.ResourceSlice, need.slices, held.slices}} {
		q := obj.Status.Allocatable[corev1.ResourceName(r.name)]
		if r.need > 0 && r.held+r.need > q.Value() {
			return outOf(r.name, r.need, r.held, q.Value())
		}
	}
	if err := n.real.kubelet.Admit(p); err != nil {
		return &refusal{"UnexpectedAdmissionError", "Pod was rejected: Allocate failed due to " + err.Error() + ", which is unexpected"}
	}
	return nil
}

// readmit decides after a restart: the device manager has dropped what it could not take back.
func (n *node) readmit(p *corev1.Pod, devices contract.NodeDevices, rebooted bool) *refusal {
	if n.real == nil {
		return readmit(p, devices, n.names, rebooted)
	}
	if !share.Asks(n.names, p) || n.real.kubelet.Active(p.UID) {
		return nil
	}
	return &refusal{"UnexpectedAdmissionError", "Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices, which is unexpected"}
}

// dropGone ends what kubelet still has of pods that have ended or are no more.
func (n *node) dropGone(pods []*corev1.Pod) {
	if n.real == nil {
		return
	}
	live := map[types.UID]bool{}
	for _, p := range pods {
		live[p.UID] = !finished(p)
	}
	for uid := range n.admitted {
		if !live[uid] {
			n.real.kubelet.Remove(uid)
			delete(n.real.seen, uid)
			if err := n.real.work.set(uid, nil, nil); err != nil {
				klog.ErrorS(err, "Processes of a pod that is gone stay", "node", n.Name)
			}
		}
	}
}
