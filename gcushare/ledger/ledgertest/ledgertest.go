// Package ledgertest helps tests that have to do with a ledger: ledgers whose Check runs when the test
// ends, and short ways to write the nodes and pods they read.
package ledgertest

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/internal/contract"
)

// Names are the names that all builders use.
var Names = contract.Default()

// New returns an empty ledger whose invariants are checked when the test ends.
func New(t testing.TB) *ledger.Ledger {
	l := ledger.New(Names)
	Guard(t, l)
	return l
}

// Guard checks a ledger's invariants when the test ends.
func Guard(t testing.TB, l *ledger.Ledger) {
	t.Helper()
	t.Cleanup(func() {
		if err := l.Check(); err != nil {
			t.Errorf("ledger at the end of the test: %v", err)
		}
	})
}

// Card is a healthy card of a simulated node, alone below its root. Its uuid is told by node and minor.
func Card(node string, minor int, mib int64) contract.NodeDevice {
	return contract.NodeDevice{Minor: minor, UUID: UUID(node, minor), Model: "S60", MemoryMiB: mib, NUMA: -1}
}

// UUID is the uuid of Card.
func UUID(node string, minor int) string { return fmt.Sprintf("GCU-%s-%d", node, minor) }

// Node is a sharing node with cards of the given memory, unit 1 GiB and six slices a card, where
// kubelet has registered all of it.
func Node(name string, mib ...int64) *v1.Node {
	var cards []contract.NodeDevice
	for i, m := range mib {
		cards = append(cards, Card(name, i, m))
	}
	return NodeOf(name, contract.NodeDevices{MemoryUnitMiB: 1024, SliceCount: contract.DefaultSliceCount, Devices: cards})
}

// NodeOf is a sharing node with a device list. Cards that are not healthy are not allocatable.
func NodeOf(name string, d contract.NodeDevices) *v1.Node {
	text, err := contract.EncodeDevices(d)
	if err != nil {
		panic(err) // a test's own device list
	}
	var cards, units int64
	for _, dev := range d.Devices {
		if dev.Health == "" {
			cards++
			units += dev.MemoryMiB / d.MemoryUnitMiB
		}
	}
	quantity := func(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("node-" + name), ResourceVersion: "1",
			Labels: map[string]string{Names.SharingLabel: "true"}, Annotations: map[string]string{Names.DevicesKey: text},
		},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceName(Names.ResourceWhole):  quantity(cards),
			v1.ResourceName(Names.ResourceMemory): quantity(units),
			v1.ResourceName(Names.ResourceSlice):  quantity(cards * d.SliceCount),
		}},
	}
}

// Pod makes a pending pod of namespace "default" from options. Its UID is its name with "uid-" before it.
func Pod(name string, options ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", Annotations: map[string]string{},
	}}
	pod.Spec.SchedulerName = contract.SchedulerName
	for _, o := range options {
		o(pod)
	}
	return pod
}

// App adds an app container that asks for an amount of a resource.
func App(name, resourceName string, amount int64) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Containers = append(p.Spec.Containers, container(name, resourceName, amount)) }
}

// Init adds an init container.
func Init(name, resourceName string, amount int64) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, container(name, resourceName, amount))
	}
}

// Sidecar adds a restartable init container.
func Sidecar(name, resourceName string, amount int64) func(*v1.Pod) {
	return func(p *v1.Pod) {
		c, always := container(name, resourceName, amount), v1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
}

func container(name, resourceName string, amount int64) v1.Container {
	c := v1.Container{Name: name}
	if amount != 0 {
		c.Resources.Limits = v1.ResourceList{v1.ResourceName(resourceName): *resource.NewQuantity(amount, resource.DecimalSI)}
	}
	return c
}

// Memory asks for units of card memory in a container named app.
func Memory(units int64) func(*v1.Pod) { return App("app", Names.ResourceMemory, units) }

// Slices asks for slices in a container named app.
func Slices(n int64) func(*v1.Pod) { return App("app", Names.ResourceSlice, n) }

// Whole asks for whole cards in a container named app.
func Whole(cards int64) func(*v1.Pod) { return App("app", Names.ResourceWhole, cards) }

// Annotate sets an annotation.
func Annotate(key, value string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Annotations[key] = value }
}

// Version sets the resourceVersion.
func Version(v string) func(*v1.Pod) { return func(p *v1.Pod) { p.ResourceVersion = v } }

// Priority sets the priority.
func Priority(v int32) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Priority = &v } }

// On binds the pod to a node without a record.
func On(node string) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.NodeName = node } }

// Recorded binds the pod to a node with a record.
func Recorded(node string, containers ...contract.ContainerAllocation) func(*v1.Pod) {
	text, err := contract.EncodeAllocation(contract.Allocation{Node: node, Containers: containers})
	if err != nil {
		panic(err) // a test's own record
	}
	return func(p *v1.Pod) {
		p.Spec.NodeName, p.Annotations[Names.AllocationKey] = node, text
	}
}

// Share is a container's entry of a record: a share of one card of the node of that name.
func Share(container, node string, minor int, mib int64) contract.ContainerAllocation {
	return contract.ContainerAllocation{Name: container, Cards: []contract.CardAllocation{{Minor: minor, UUID: UUID(node, minor), MemoryMiB: mib}}}
}

// Exclusive is a container's entry of a record: a whole card of the node of that name.
func Exclusive(container, node string, minor int, mib int64) contract.ContainerAllocation {
	a := Share(container, node, minor, mib)
	a.Cards[0].Whole = true
	return a
}

// Initialized sets the pod's condition.
func Initialized(p *v1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.PodInitialized, Status: v1.ConditionTrue})
}
