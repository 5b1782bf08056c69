// Package surveytest makes Node and Pod objects as a cluster with GCU cards has them, for tests, and
// compares what is drawn of them with golden files.
package surveytest

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/internal/contract"
)

// Names are the default names, and Now the time of all tests.
var (
	Names = contract.Default()
	Now   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// Host is a simulated machine on its way to a Node object.
type Host struct {
	Name    string
	Machine sim.Machine
	UnitMiB int64
	Cordon  []contract.CordonedCard
	// Node is what Object completes.
	Node *v1.Node
}

// NewHost returns a machine of a preset: all well, nothing held, 64 CPUs. It panics on an unknown preset.
func NewHost(preset, name string) *Host {
	m, err := sim.Preset(preset)
	if err != nil {
		panic(err)
	}
	return &Host{Name: name, Machine: m.ForNode(name), UnitMiB: 1024, Node: &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, ResourceVersion: "1",
			Labels: map[string]string{
				Names.SharingLabel: "true", Names.PresentLabel: "true", v1.LabelHostname: name,
				Names.Label(contract.LabelModel): m.Cards[0].Model,
			},
			Annotations: map[string]string{},
		},
		Status: v1.NodeStatus{
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
			Allocatable: v1.ResourceList{
				v1.ResourceCPU: resource.MustParse("64"), v1.ResourceMemory: resource.MustParse("512Gi"), v1.ResourcePods: resource.MustParse("110"),
			},
		},
	}}
}

// Object returns the Node object as the node's agent and kubelet write it. Kubelet offers as much as
// fits free cards, and more: what it offers is not the subject of these tests.
func (h *Host) Object() *v1.Node {
	text, err := contract.EncodeDevices(eflib.NodeDevices(h.Machine.Cards, h.UnitMiB, contract.DefaultSliceCount))
	if err != nil {
		panic(err)
	}
	h.Node.Annotations[Names.DevicesKey] = text
	if h.Cordon != nil {
		if text, err = contract.EncodeCordon(contract.Cordon{Cards: h.Cordon}); err != nil {
			panic(err)
		}
		h.Node.Annotations[Names.CordonKey] = text
	}
	units, cards := int64(0), int64(len(h.Machine.Cards))
	for _, c := range h.Machine.Cards {
		units += c.MemoryMiB / h.UnitMiB
	}
	for name, n := range map[string]int64{Names.ResourceWhole: cards, Names.ResourceMemory: units, Names.ResourceSlice: cards * contract.DefaultSliceCount} {
		h.Node.Status.Allocatable[v1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return h.Node
}

// Work is a container of a pod and the cards it holds.
type Work struct {
	Name     string
	Resource string
	Amount   int64
	Minors   []int
	Init     bool
}

// Whole is a container with whole cards.
func Whole(name string, minors ...int) Work {
	return Work{Name: name, Resource: Names.ResourceWhole, Amount: int64(len(minors)), Minors: minors}
}

// Memory is a container with memory units, evenly on some cards.
func Memory(name string, units int64, minors ...int) Work {
	return Work{Name: name, Resource: Names.ResourceMemory, Amount: units, Minors: minors}
}

// Slices is a container with slices, evenly on some cards.
func Slices(name string, n int64, minors ...int) Work {
	return Work{Name: name, Resource: Names.ResourceSlice, Amount: n, Minors: minors}
}

// Initial makes an init container of a container.
func Initial(w Work) Work {
	w.Init = true
	return w
}

// Pod returns a running pod with its record.
func (h *Host) Pod(namespace, name string, parts ...Work) *v1.Pod {
	pod := h.Bare(namespace, name, parts...)
	record := contract.Allocation{Node: h.Name}
	for _, w := range parts {
		a := contract.ContainerAllocation{Name: w.Name}
		for _, minor := range w.Minors {
			a.Cards = append(a.Cards, h.share(w, minor))
		}
		record.Containers = append(record.Containers, a)
	}
	text, err := contract.EncodeAllocation(record)
	if err != nil {
		panic(err)
	}
	pod.Annotations[Names.AllocationKey] = text
	return pod
}

func (h *Host) share(w Work, minor int) contract.CardAllocation {
	for _, c := range h.Machine.Cards {
		if c.Minor != minor {
			continue
		}
		out := contract.CardAllocation{Minor: minor, UUID: c.UUID, MemoryMiB: c.MemoryMiB}
		switch each := w.Amount / int64(len(w.Minors)); w.Resource {
		case Names.ResourceMemory:
			out.MemoryMiB = each * h.UnitMiB
		case Names.ResourceSlice:
			out.MemoryMiB = each * (c.MemoryMiB / contract.DefaultSliceCount)
		default:
			out.Whole = true
		}
		return out
	}
	panic(fmt.Sprintf("%s has no card %d", h.Name, minor))
}

// Bare returns a running pod without a record, bound ten seconds ago.
func (h *Host) Bare(namespace, name string, parts ...Work) *v1.Pod {
	pod := Waiting(namespace, name, parts...)
	pod.Spec.NodeName = h.Name
	pod.Status = v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(Now.Add(-10 * time.Second))},
		{Type: v1.PodInitialized, Status: v1.ConditionTrue},
	}}
	return pod
}

// Waiting returns a pod on no node, made five minutes ago for our scheduler.
func Waiting(namespace, name string, parts ...Work) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(fmt.Sprintf("uid-%s-%s", namespace, name)),
			ResourceVersion: "1", Annotations: map[string]string{}, CreationTimestamp: metav1.NewTime(Now.Add(-5 * time.Minute)),
		},
		Spec:   v1.PodSpec{SchedulerName: contract.SchedulerName},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
	for _, w := range parts {
		c := v1.Container{Name: w.Name}
		if w.Amount > 0 {
			c.Resources.Limits = v1.ResourceList{v1.ResourceName(w.Resource): *resource.NewQuantity(w.Amount, resource.DecimalSI)}
		}
		if w.Init {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
			continue
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	return pod
}

// Said adds what the scheduler said of a waiting pod.
func Said(pod *v1.Pod, message string) *v1.Pod {
	pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{
		Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: message,
		LastTransitionTime: metav1.NewTime(Now.Add(-4 * time.Minute)),
	})
	return pod
}
