package gcumap_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/gcumap"
)

var (
	names = contract.Default()
	now   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// host is a simulated machine on its way to a Node object.
type host struct {
	t       *testing.T
	name    string
	machine sim.Machine
	unitMiB int64
	cordon  []contract.CordonedCard
	node    *v1.Node
}

func newHost(t *testing.T, preset, name string) *host {
	t.Helper()
	m, err := sim.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	return &host{t: t, name: name, machine: m.ForNode(name), unitMiB: 1024, node: &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, ResourceVersion: "1",
			Labels:      map[string]string{names.SharingLabel: "true", names.PresentLabel: "true"},
			Annotations: map[string]string{},
		},
		Status: v1.NodeStatus{
			Conditions:  []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
			Allocatable: v1.ResourceList{},
		},
	}}
}

// object returns the Node object as the node's agent and kubelet write it.
func (h *host) object() *v1.Node {
	h.t.Helper()
	text, err := contract.EncodeDevices(eflib.NodeDevices(h.machine.Cards, h.unitMiB, contract.DefaultSliceCount))
	if err != nil {
		h.t.Fatal(err)
	}
	h.node.Annotations[names.DevicesKey] = text
	if h.cordon != nil {
		if text, err = contract.EncodeCordon(contract.Cordon{Cards: h.cordon}); err != nil {
			h.t.Fatal(err)
		}
		h.node.Annotations[names.CordonKey] = text
	}
	h.node.Status.Allocatable[v1.ResourceName(names.ResourceWhole)] = *resource.NewQuantity(int64(len(h.machine.Cards)), resource.DecimalSI)
	return h.node
}

// work is a container of a pod and the cards it holds.
type work struct {
	name     string
	resource string
	amount   int64
	minors   []int
	init     bool
}

func whole(name string, minors ...int) work {
	return work{name: name, resource: names.ResourceWhole, amount: int64(len(minors)), minors: minors}
}

func memory(name string, units int64, minors ...int) work {
	return work{name: name, resource: names.ResourceMemory, amount: units, minors: minors}
}

func slices(name string, n int64, minors ...int) work {
	return work{name: name, resource: names.ResourceSlice, amount: n, minors: minors}
}

func initial(w work) work {
	w.init = true
	return w
}

// pod returns a running pod with its record.
func (h *host) pod(namespace, name string, parts ...work) *v1.Pod {
	h.t.Helper()
	pod := h.bare(namespace, name, parts...)
	record := contract.Allocation{Node: h.name}
	for _, w := range parts {
		a := contract.ContainerAllocation{Name: w.name}
		for _, minor := range w.minors {
			a.Cards = append(a.Cards, h.share(w, minor))
		}
		record.Containers = append(record.Containers, a)
	}
	text, err := contract.EncodeAllocation(record)
	if err != nil {
		h.t.Fatal(err)
	}
	pod.Annotations[names.AllocationKey] = text
	return pod
}

func (h *host) share(w work, minor int) contract.CardAllocation {
	for _, c := range h.machine.Cards {
		if c.Minor != minor {
			continue
		}
		out := contract.CardAllocation{Minor: minor, UUID: c.UUID, MemoryMiB: c.MemoryMiB}
		each := w.amount / int64(len(w.minors))
		switch w.resource {
		case names.ResourceMemory:
			out.MemoryMiB = each * h.unitMiB
		case names.ResourceSlice:
			out.MemoryMiB = each * (c.MemoryMiB / contract.DefaultSliceCount)
		default:
			out.Whole = true
		}
		return out
	}
	h.t.Fatalf("%s has no card %d", h.name, minor)
	return contract.CardAllocation{}
}

// bare returns a running pod without a record.
func (h *host) bare(namespace, name string, parts ...work) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(fmt.Sprintf("uid-%s-%s", namespace, name)),
			ResourceVersion: "1", Annotations: map[string]string{},
		},
		Spec: v1.PodSpec{NodeName: h.name},
		Status: v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{
			{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-10 * time.Second))},
			{Type: v1.PodInitialized, Status: v1.ConditionTrue},
		}},
	}
	for _, w := range parts {
		c := v1.Container{Name: w.name, Resources: v1.ResourceRequirements{Limits: v1.ResourceList{
			v1.ResourceName(w.resource): *resource.NewQuantity(w.amount, resource.DecimalSI),
		}}}
		if w.init {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
			continue
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

func initializing(pod *v1.Pod) *v1.Pod {
	pod.Status.Conditions[1].Status = v1.ConditionFalse
	return pod
}

func overdue(pod *v1.Pod) *v1.Pod {
	pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-2 * time.Minute))
	return pod
}

func build(s *gcumap.Snapshot) *gcumap.Map {
	return gcumap.Build(s, gcumap.Options{Names: names, RecordTimeout: time.Minute, Now: now})
}

// scenes are clusters by name, one golden file each.
func scenes(t *testing.T) map[string]*gcumap.Snapshot {
	return map[string]*gcumap.Snapshot{
		"example":      example(t),
		"machines":     machines(t),
		"holders":      manyHolders(t),
		"closed":       closed(t),
		"odd":          odd(t),
		"tenant":       tenant(t),
		"nodes-unseen": nodesUnseen(t),
		"no-gcu":       {Nodes: []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "web-2"}}}},
		"empty":        {},
	}
}

// example is the picture of the README.
func example(t *testing.T) *gcumap.Snapshot {
	a := newHost(t, "s60x8", "gcu-node-1")
	a.machine.SetHealth(7, "HBM ECC errors")
	a.cordon = []contract.CordonedCard{{Minor: 6, Reason: "fan to be replaced"}}
	b := newHost(t, "t20x4", "gcu-node-2")
	return &gcumap.Snapshot{
		Nodes: []*v1.Node{a.object(), b.object(), {ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}},
		Pods: []*v1.Pod{
			a.pod("research", "pretrain-0", whole("trainer", 0, 1)),
			a.pod("serving", "chat-6f9d7c5b8-x2x9z", memory("server", 20, 4)),
			a.pod("serving", "embed-7c44f8d9b-q8w4k", memory("server", 8, 4)),
			a.pod("notebooks", "jupyter-anna-0", slices("lab", 2, 5)),
			initializing(a.pod("serving", "rerank-5b6d4f7c9-k8s2p", initial(memory("fetch", 4, 5)), memory("server", 12, 5))),
			b.pod("batch", "nightly-eval-28561-dr7vz", whole("eval", 0)),
			b.pod("serving", "ocr-7d5c9b4f6-tm4xl", memory("detect", 8, 2), memory("read", 16, 2)),
		},
	}
}

func machines(t *testing.T) *gcumap.Snapshot {
	s := &gcumap.Snapshot{}
	for _, preset := range sim.Presets() {
		h := newHost(t, preset, preset)
		s.Nodes = append(s.Nodes, h.object())
		s.Pods = append(s.Pods, h.pod("ml", "on-"+preset, whole("main", 0)), h.pod("ml", "share-"+preset, memory("main", 1, 1)))
	}
	return s
}

func manyHolders(t *testing.T) *gcumap.Snapshot {
	h := newHost(t, "s60x8-2sw", "full")
	h.unitMiB = 102
	s := &gcumap.Snapshot{Nodes: []*v1.Node{h.object()}}
	for i := range 21 {
		s.Pods = append(s.Pods, h.pod("tenant", fmt.Sprintf("small-%02d", i), memory("main", 10, 0)))
	}
	s.Pods = append(s.Pods,
		h.pod("a-team-with-a-long-name", "inference-gateway-deployment-6f9d7c5b8-x2x9z", memory("a-container-with-a-long-name", 400, 1)),
		h.pod("ml", "trio", memory("a", 10, 1), slices("b", 1, 1), initial(memory("c", 5, 1))),
		h.pod("ml", "wide", memory("main", 40, 2, 3)),
		h.pod("ml", "everything", memory("main", 421, 4)))
	leaving := h.pod("ml", "leaving", memory("main", 1, 5))
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	waiting := h.bare("ml", "waiting", memory("main", 1))
	waiting.Spec.NodeName = ""
	ended := h.pod("ml", "ended", whole("main", 7))
	ended.Status.Phase = v1.PodSucceeded
	s.Pods = append(s.Pods, leaving, waiting, ended)
	return s
}

func closed(t *testing.T) *gcumap.Snapshot {
	unreadable := newHost(t, "t20x4", "unreadable")
	broken := unreadable.pod("ml", "copied", memory("main", 4, 0))
	broken.Annotations[names.AllocationKey] = `{"version":"v9"}`
	missing := newHost(t, "t20x4", "record-missing")
	tooMuch := newHost(t, "t20x4", "too-much")
	devices := newHost(t, "t20x4", "bad-devices")
	devices.object()
	devices.node.Annotations[names.DevicesKey] = "{"
	cordon := newHost(t, "t20x4", "bad-cordon")
	cordon.object()
	cordon.node.Annotations[names.CordonKey] = "soon"
	return &gcumap.Snapshot{
		Nodes: []*v1.Node{unreadable.object(), missing.object(), tooMuch.object(), devices.node, cordon.node},
		Pods: []*v1.Pod{
			broken, unreadable.pod("ml", "fine", memory("main", 4, 0)),
			overdue(missing.bare("kube-system", "daemon-x7k2p", memory("main", 4))),
			missing.bare("ml", "just-bound", whole("main", 1)),
			tooMuch.pod("ml", "one", memory("main", 20, 0)), tooMuch.pod("ml", "two", memory("main", 20, 0)),
			devices.pod("ml", "hidden", memory("main", 2, 1)),
		},
	}
}

func odd(t *testing.T) *gcumap.Snapshot {
	until := now.Add(48 * time.Hour)
	sick := newHost(t, "l300x8", "odd-node-with-quite-a-long-name.rack-17.datacenter-north.example.com")
	sick.machine.SetHealth(0, "temperature 97 °C above the limit of 95 °C; 显存温度过高，请检查风扇\x1b[31m")
	sick.machine.SetHealth(1, "lost")
	sick.cordon = []contract.CordonedCard{{Minor: 2, Reason: "memory test", Until: &until}, {Minor: 3}, {Minor: 4, Reason: "x"}}
	swapped := newHost(t, "t20x4", "swapped")
	before := swapped.pod("ml", "from-before", memory("main", 3, 2))
	for i := range swapped.machine.Cards {
		if swapped.machine.Cards[i].Minor == 2 {
			swapped.machine.Cards[i].UUID = "GCU-NEW"
		}
	}
	gone := swapped.pod("ml", "card-gone", memory("main", 3, 3))
	swapped.machine.Remove(3)
	down := newHost(t, "t20x4", "down")
	down.object()
	down.node.Labels[names.SharingLabel] = "false"
	down.node.Spec.Unschedulable = true
	down.node.Status.Conditions[0].Status = v1.ConditionUnknown
	down.node.Status.Allocatable = nil
	silent := newHost(t, "t20x4", "silent")
	removed := newHost(t, "t20x4", "removed")
	return &gcumap.Snapshot{
		Nodes: []*v1.Node{sick.object(), swapped.object(), down.node, silent.node},
		Pods: []*v1.Pod{
			sick.pod("ml", "on-sick", memory("main", 8, 0)), sick.pod("ml", "on-cordoned", memory("main", 8, 4)),
			before, gone, removed.pod("ml", "orphan", memory("main", 2, 1)),
		},
	}
}

func tenant(t *testing.T) *gcumap.Snapshot {
	h := newHost(t, "t20x4", "shared-node")
	return &gcumap.Snapshot{
		Nodes: []*v1.Node{h.object()}, Pods: []*v1.Pod{h.pod("mine", "job", memory("main", 4, 0))},
		Unseen: []string{"Pods of namespaces other than mine may not be read."},
	}
}

func nodesUnseen(t *testing.T) *gcumap.Snapshot {
	h := newHost(t, "t20x4", "shared-node")
	return &gcumap.Snapshot{
		Pods:   []*v1.Pod{h.pod("mine", "job", memory("main", 8, 0, 1)), h.pod("mine", "train", whole("main", 3))},
		Unseen: []string{"Nodes may not be listed: cards and their memory are unknown."},
	}
}
