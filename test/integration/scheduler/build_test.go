package scheduler_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/sandbox/simnode"
)

const (
	gcu       = "enflame.com/gcu"
	gcuMemory = "enflame.com/gcu-memory"
	sharedGCU = "enflame.com/shared-gcu"
)

var names = contract.Default()

// machine makes a node of flat cards with the given memory in GiB, the unit being 1 GiB.
func machine(name string, gib ...int64) simnode.Machine {
	m := simnode.Machine{Name: name, Preset: "test", Hardware: simnode.Hardware{
		Host: "Test", Driver: "1.8.7", CPUs: 64, MemoryGiB: 512,
		Devices: contract.NodeDevices{MemoryUnitMiB: 1024, SliceCount: 6},
	}}
	for i, g := range gib {
		m.Devices.Devices = append(m.Devices.Devices, contract.NodeDevice{
			Minor: i, UUID: fmt.Sprintf("GCU-%s-%d", name, i), Model: "S60", MemoryMiB: g * 1024,
			PCIBusID: fmt.Sprintf("0000:%02x:00.0", 0x10+i), NUMA: -1,
		})
	}
	return m
}

// preset makes a node of a preset machine.
func preset(t *testing.T, kind, name string) simnode.Machine {
	t.Helper()
	m, err := simnode.NewMachine(kind, name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

type option func(*v1.Pod)

// pod makes a pod of our scheduler with one container "main" that asks for amount of a resource.
func pod(name, res, amount string, options ...option) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Spec: v1.PodSpec{
			SchedulerName: contract.SchedulerName,
			Containers:    []v1.Container{container("main", res, amount)},
		},
	}
	for _, o := range options {
		o(p)
	}
	return p
}

func container(name, res, amount string) v1.Container {
	c := v1.Container{Name: name, Image: "registry.k8s.io/pause:3.10"}
	if res != "" {
		c.Resources.Limits = v1.ResourceList{v1.ResourceName(res): resource.MustParse(amount)}
	}
	return c
}

func annotated(key, value string) option { return func(p *v1.Pod) { p.Annotations[key] = value } }

func initContainer(c v1.Container) option {
	return func(p *v1.Pod) { p.Spec.InitContainers = append(p.Spec.InitContainers, c) }
}

func also(c v1.Container) option {
	return func(p *v1.Pod) { p.Spec.Containers = append(p.Spec.Containers, c) }
}

func scheduledBy(name string) option { return func(p *v1.Pod) { p.Spec.SchedulerName = name } }

func selecting(key, value string) option {
	return func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
}

// record reads a pod's record: per container the cards as "minor:MiB".
func record(t *testing.T, p *v1.Pod) map[string][]string {
	t.Helper()
	a, err := contract.DecodeAllocation(p.Annotations[names.AllocationKey])
	if err != nil {
		t.Fatalf("record of %s: %v", p.Name, err)
	}
	if a.Node != p.Spec.NodeName {
		t.Errorf("record of %s is for node %s, the pod is on %s", p.Name, a.Node, p.Spec.NodeName)
	}
	out := map[string][]string{}
	for _, c := range a.Containers {
		for _, card := range c.Cards {
			out[c.Name] = append(out[c.Name], fmt.Sprintf("%d:%d", card.Minor, card.MemoryMiB))
		}
	}
	return out
}
