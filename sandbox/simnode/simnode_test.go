package simnode

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/sandbox/simnode/fault"
)

var names = contract.Default()

// twoCards is a node with two cards of 41 GiB, unit 1 GiB, six slices.
func twoCards() contract.NodeDevices {
	d := contract.NodeDevices{MemoryUnitMiB: 1024, SliceCount: 6}
	for i := range 2 {
		d.Devices = append(d.Devices, contract.NodeDevice{Minor: i, UUID: fmt.Sprintf("GCU-%d", i), Model: "S60", MemoryMiB: 41984, NUMA: -1})
	}
	return d
}

func limits(kind string, n int64) corev1.ResourceRequirements {
	q := *resource.NewQuantity(n, resource.DecimalSI)
	list := corev1.ResourceList{corev1.ResourceName(kind): q}
	return corev1.ResourceRequirements{Limits: list, Requests: list}
}

type podOption func(*corev1.Pod)

func newPod(name string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "main"}}},
	}
	for _, o := range options {
		o(p)
	}
	return p
}

func asks(kind string, n int64) podOption {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources = limits(kind, n) }
}

func initAsks(kind string, n int64) podOption {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "init", Resources: limits(kind, n)})
	}
}

func holdsCard(container string, minor int, mib int64, whole bool) podOption {
	return func(p *corev1.Pod) {
		a := &contract.Allocation{Node: "n"}
		if text, ok := p.Annotations[names.AllocationKey]; ok {
			a, _ = contract.DecodeAllocation(text)
		}
		a.Containers = append(a.Containers, contract.ContainerAllocation{
			Name: container, Cards: []contract.CardAllocation{{Minor: minor, UUID: fmt.Sprintf("GCU-%d", minor), MemoryMiB: mib, Whole: whole}},
		})
		text, err := contract.EncodeAllocation(*a)
		if err != nil {
			panic(err)
		}
		p.Annotations[names.AllocationKey] = text
	}
}

func isInitialized(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue})
}

func TestAllocatableIsFreePlusHeld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pods    []*corev1.Pod
		fault   fault.Set
		closed  bool
		want    units // allocatable
		leaving units // free
	}{
		"empty node": {
			want: units{2, 82, 12}, leaving: units{2, 82, 12},
		},
		"a share takes its card out of the whole ones, and rounds the rest down": {
			pods: []*corev1.Pod{newPod("a", asks(names.ResourceMemory, 8), holdsCard("main", 0, 8192, false))},
			want: units{1, 82, 10}, leaving: units{1, 74, 10},
		},
		"a whole card leaves neither units nor slices on it": {
			pods: []*corev1.Pod{newPod("a", asks(names.ResourceWhole, 1), holdsCard("main", 1, 41984, true))},
			want: units{2, 41, 6}, leaving: units{1, 41, 6},
		},
		"before its init containers are done a pod is charged the larger": {
			pods: []*corev1.Pod{newPod("a", initAsks(names.ResourceMemory, 30), asks(names.ResourceMemory, 8),
				holdsCard("init", 0, 30720, false), holdsCard("main", 0, 8192, false))},
			want: units{1, 82, 7}, leaving: units{1, 52, 7},
		},
		"after that only what runs on": {
			pods: []*corev1.Pod{newPod("a", initAsks(names.ResourceMemory, 30), asks(names.ResourceMemory, 8),
				holdsCard("init", 0, 30720, false), holdsCard("main", 0, 8192, false), isInitialized)},
			want: units{1, 104, 10}, leaving: units{1, 74, 10},
		},
		"a failed card loses its free units and keeps its holder's": {
			pods:  []*corev1.Pod{newPod("a", asks(names.ResourceMemory, 8), holdsCard("main", 0, 8192, false))},
			fault: fault.Set{Failed: []int{0}},
			want:  units{1, 49, 6}, leaving: units{1, 41, 6},
		},
		"a missing card is no longer counted": {
			fault: fault.Set{Gone: []int{1}},
			want:  units{1, 41, 6}, leaving: units{1, 41, 6},
		},
		"a pod without a record is charged where most room is": {
			pods: []*corev1.Pod{
				newPod("a", asks(names.ResourceMemory, 8), holdsCard("main", 0, 8192, false)),
				newPod("b", asks(names.ResourceMemory, 40)),
			},
			want: units{0, 82, 4}, leaving: units{0, 34, 4},
		},
		"without the sharing label only whole cards are free": {
			closed: true,
			pods:   []*corev1.Pod{newPod("a", asks(names.ResourceMemory, 8), holdsCard("main", 0, 8192, false))},
			want:   units{1, 8, 0}, leaving: units{1, 0, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			free := newNodeCards(c.fault.Apply(twoCards()), names, !c.closed, c.pods).free()
			if free != c.leaving {
				t.Errorf("free: got %+v, want %+v", free, c.leaving)
			}
			if got := allocatable(free, c.pods, names); got != c.want {
				t.Errorf("allocatable: got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestAdmissionIsKubelets(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}}}
	capacity := corev1.ResourceList{
		corev1.ResourcePods: resource.MustParse("3"), corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
	}
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		others []*corev1.Pod
		want   string
	}{
		"fits":                          {pod: newPod("p", asks(names.ResourceMemory, 41))},
		"its own record does not count": {pod: newPod("p", asks(names.ResourceMemory, 41), holdsCard("main", 0, 41984, false))},
		"more cards than there are":     {pod: newPod("p", asks(names.ResourceWhole, 3)), want: "OutOfenflame.com/gcu"},
		"no whole card left": {
			pod:    newPod("p", asks(names.ResourceWhole, 2)),
			others: []*corev1.Pod{newPod("a", asks(names.ResourceMemory, 1), holdsCard("main", 0, 1024, false))},
			want:   "OutOfenflame.com/gcu",
		},
		"no slice left": {
			pod: newPod("p", asks(names.ResourceSlice, 1)),
			others: []*corev1.Pod{
				newPod("a", asks(names.ResourceWhole, 1), holdsCard("main", 0, 41984, true)),
				newPod("b", asks(names.ResourceWhole, 1)),
			},
			want: "OutOfenflame.com/shared-gcu",
		},
		"too much CPU":  {pod: newPod("p", asks("cpu", 5)), want: "OutOfcpu"},
		"too many pods": {pod: newPod("p"), others: []*corev1.Pod{newPod("a"), newPod("b"), newPod("c")}, want: "OutOfpods"},
		"another zone":  {pod: newPod("p", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "b"} }), want: "NodeAffinity"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if why := admit(c.pod, node, capacity, newNodeCards(twoCards(), names, true, c.others), c.others, names); why != nil {
				got = why.reason
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestLifecycle drives a pod by the steps alone and writes down what a watcher would see.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	p := newPod("p", func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "first"}, {Name: "side", RestartPolicy: &always}, {Name: "second"}}
		p.Annotations[RunForAnnotation] = "20s"
		p.Annotations[InitForAnnotation] = "1s"
	})
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	began := now
	p.Status = *start(p, address{"198.19.0.2", "198.18.0.2"}, now)
	var got []string
	for range 20 {
		line := fmt.Sprintf("%3.0fs %s", now.Sub(began).Seconds(), p.Status.Phase)
		for _, cs := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
			switch {
			case cs.State.Running != nil:
				line += " +" + cs.Name
			case cs.State.Terminated != nil:
				line += " -" + cs.Name
			}
		}
		got = append(got, line)
		if finished(p) {
			break
		}
		s := next(p, now)
		if s.status != nil {
			p.Status = *s.status
		}
		if s.after > time.Millisecond {
			now = now.Add(s.after)
		}
	}
	want := []string{
		"  0s Pending",
		"  1s Pending +first",
		"  1s Pending -first",
		"  2s Pending -first +side +second",
		" 22s Running -first +side -second +main",
		" 22s Succeeded -first -side -second -main",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDeletionHonoursGrace(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := newPod("p", func(p *corev1.Pod) { p.Annotations[StopForAnnotation] = "1h" })
	p.Status = *start(p, address{}, now)
	p.Status = *next(p, now).status
	grace := int64(30)
	deadline := metav1.NewTime(now.Add(30 * time.Second))
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &deadline, &grace
	if s := next(p, now.Add(10*time.Second)); s.remove || s.after != 20*time.Second {
		t.Errorf("within grace: got %+v, want to come back after 20s", s)
	}
	if s := next(p, now.Add(30*time.Second)); !s.remove || s.status == nil || s.status.Phase != corev1.PodSucceeded {
		t.Errorf("after grace: got %+v, want the containers ended and the pod removed", s)
	}
}

func TestReadmission(t *testing.T) {
	t.Parallel()
	holder := newPod("p", asks(names.ResourceMemory, 8), holdsCard("main", 1, 8192, false))
	failed := fault.Set{Failed: []int{1}}.Apply(twoCards())
	for name, c := range map[string]struct {
		pod      *corev1.Pod
		devices  contract.NodeDevices
		rebooted bool
		refused  bool
	}{
		"healthy card":           {holder, twoCards(), false, false},
		"failed card":            {holder, failed, false, true},
		"reboot":                 {holder, twoCards(), true, true},
		"reboot, no card wanted": {newPod("q"), twoCards(), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			why := readmit(c.pod, c.devices, names, c.rebooted)
			if (why != nil) != c.refused {
				t.Errorf("got %v, want refused %v", why, c.refused)
			}
			if why != nil && why.reason != "UnexpectedAdmissionError" {
				t.Errorf("reason %q", why.reason)
			}
		})
	}
}

func TestParseMachines(t *testing.T) {
	t.Parallel()
	got, err := ParseMachines([]string{"s60x8:2", "t10x8", "s60x8"})
	if err != nil {
		t.Fatal(err)
	}
	var nodes []string
	seen := map[string]bool{}
	for _, m := range got {
		nodes = append(nodes, m.Name)
		for _, d := range m.Devices.Devices {
			if seen[d.UUID] {
				t.Errorf("uuid %s stands twice", d.UUID)
			}
			seen[d.UUID] = true
		}
	}
	if diff := cmp.Diff([]string{"s60x8-0", "s60x8-1", "t10x8-0", "s60x8-2"}, nodes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, bad := range []string{"s60x9", "s60x8:0", "s60x8:x", ":2"} {
		if _, err := ParseMachines([]string{bad}); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}
