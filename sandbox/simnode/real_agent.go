package simnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/topscloud/topscloud/deviceplugin/agent"
	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/deviceplugin/kubelet/kubelettest"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/sandbox/simnode/fault"
)

// SeesAnnotation is written to a pod whose containers have cards, where nodes run the real agent: a JSON
// object, per container what the engine would pass it. It is found as an engine finds it, by the CDI names in
// kubelet's answer, and knows nothing of the pod's record.
const SeesAnnotation = "gcu.sandbox/sees"

// Seen is what a container sees: the values of its environment.
type Seen struct {
	Cards     string `json:"cards"`
	MemoryMiB string `json:"memoryMiB"`
}

// again is how often a node with a real agent looks at what kubelet offers.
const again = 200 * time.Millisecond

// realAgent is the real node agent, the imitation of kubelet it talks to, and their folder.
type realAgent struct {
	kubelet *kubelettest.Kubelet
	agent   *agent.Agent
	root    string
	// The fields below are touched by the node's worker only.
	down   bool
	faults string
	seen   map[types.UID]map[string]Seen
}

// startAgent runs the agent until the manager ends. The folder is a short one: sockets have paths of at most
// 107 bytes.
func (n *node) startAgent(ctx context.Context) error {
	client, err := n.manager.options.AgentClient(ctx, n.Name)
	if err != nil {
		return err
	}
	root, err := os.MkdirTemp("", "gcun-")
	if err != nil {
		return err
	}
	r := &realAgent{root: root, seen: map[types.UID]map[string]Seen{}}
	if r.kubelet, err = kubelettest.Run(root); err != nil {
		return errors.Join(err, os.RemoveAll(root))
	}
	cards, err := source.Open(source.Options{
		Source: source.Sim, Machine: n.Preset, Node: n.Name, ControlFile: r.control(), Interval: time.Second,
	})
	if err != nil {
		r.kubelet.Down()
		return errors.Join(err, os.RemoveAll(root))
	}
	r.agent, err = agent.New(agent.Options{
		Names: n.names, Node: n.Name, Client: client, Source: cards, Instance: "sim",
		PluginDir: r.kubelet.PluginDir(), PodResources: r.kubelet.PodResourcesSocket(),
		CDIDir: filepath.Join(root, "cdi"), StateDir: filepath.Join(root, "state"), HostRoot: filepath.Join(root, "host"),
		UnitMiB: n.Devices.MemoryUnitMiB, SliceCount: n.Devices.SliceCount,
		HealthInterval: time.Second, NodeInterval: 2 * time.Second, Settle: 20 * time.Millisecond,
		Health: health.Options{Thresholds: health.Thresholds{Probation: time.Second}},
	})
	if err != nil {
		r.kubelet.Down()
		return errors.Join(err, cards.Close(), os.RemoveAll(root))
	}
	n.real = r
	living := n.manager.living
	n.manager.agents.Go(func() {
		if err := r.agent.Run(living); err != nil {
			klog.FromContext(living).Error(err, "The agent of a simulated node ended", "node", n.Name)
		}
		r.kubelet.Down()
		if err := errors.Join(cards.Close(), os.RemoveAll(root)); err != nil {
			klog.FromContext(living).Error(err, "A simulated node left something behind", "node", n.Name)
		}
	})
	return nil
}

func (r *realAgent) control() string { return filepath.Join(r.root, "faults") }

// up brings kubelet back after a stop and puts the cards' faults in force. It reports whether the agent is
// registered.
func (r *realAgent) up(f fault.Set) (ready bool, err error) {
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
	if text := fmt.Sprint(faults); text != r.faults {
		if err := sim.WriteFaults(r.control(), faults...); err != nil {
			return false, err
		}
		r.faults = text
	}
	return r.agent.Ready() == nil, nil
}

func (r *realAgent) restart(reboot bool) error {
	if reboot {
		return r.kubelet.Reboot()
	}
	return r.kubelet.Restart()
}

func (r *realAgent) capacity(names *contract.Names) units { return r.units(names, r.kubelet.Capacity) }
func (r *realAgent) allocatable(names *contract.Names) units {
	return r.units(names, r.kubelet.Allocatable)
}

func (r *realAgent) units(names *contract.Names, of func(string) int) units {
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
		}
	}
}

// startContainers does what kubelet does before the containers run that a new status says run: it asks the
// agent, hands the engine what it got, and notes what the container sees. It returns the pod as it is then,
// nil when a container was refused.
func (n *node) startContainers(ctx context.Context, p *corev1.Pod, status *corev1.PodStatus) (*corev1.Pod, error) {
	if n.real == nil || status == nil || !share.Asks(n.names, p) {
		return p, nil
	}
	if !n.real.kubelet.Active(p.UID) {
		// A pod of an earlier run of this sandbox: kubelet has to take it in first.
		if err := n.real.kubelet.Admit(p); err != nil {
			return nil, err
		}
	}
	changed := false
	for _, name := range newlyRunning(p.Status, *status) {
		seen, err := n.real.start(p, name, n.names)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("A container was refused", "pod", klog.KObj(p), "container", name, "err", err)
			return nil, nil
		}
		if seen == (Seen{}) {
			continue
		}
		if n.real.seen[p.UID] == nil {
			n.real.seen[p.UID] = map[string]Seen{}
		}
		n.real.seen[p.UID][name] = seen
		changed = true
	}
	if !changed {
		return p, nil
	}
	text, err := json.Marshal(n.real.seen[p.UID])
	if err != nil {
		return nil, err
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, p.UID, SeesAnnotation, text)
	// The status is written next, upon the version that comes of this.
	return n.manager.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
}

// newlyRunning returns the containers that run in the new status and did not in the old one.
func newlyRunning(was, is corev1.PodStatus) []string {
	var out []string
	before := slices.Concat(was.InitContainerStatuses, was.ContainerStatuses)
	for _, cs := range slices.Concat(is.InitContainerStatuses, is.ContainerStatuses) {
		ran := slices.ContainsFunc(before, func(b corev1.ContainerStatus) bool { return b.Name == cs.Name && b.State.Running != nil })
		if cs.State.Running != nil && !ran {
			out = append(out, cs.Name)
		}
	}
	return out
}

// start asks kubelet for a container and resolves its CDI names as an engine would.
func (r *realAgent) start(p *corev1.Pod, container string, names *contract.Names) (Seen, error) {
	o, err := r.kubelet.Start(p.UID, container)
	if err != nil {
		return Seen{}, err
	}
	if len(o.CDIDevices) == 0 {
		return Seen{}, nil
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(filepath.Join(r.root, "cdi")), cdi.WithAutoRefresh(false))
	if err != nil {
		return Seen{}, err
	}
	var s Seen
	for _, name := range o.CDIDevices {
		d := cache.GetDevice(name)
		if d == nil {
			return Seen{}, fmt.Errorf("unresolvable CDI devices %s", name)
		}
		for _, env := range d.ContainerEdits.Env {
			if v, ok := strings.CutPrefix(env, contract.EnvVisibleDevices+"="); ok {
				s.Cards = v
			}
			if v, ok := strings.CutPrefix(env, contract.EnvUsableMemory+"="); ok {
				s.MemoryMiB = v
			}
		}
	}
	return s, nil
}
