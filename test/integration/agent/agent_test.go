package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/deviceplugin/agent"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/test/integration/nodetest"
)

// A machine of four cards of 32 GiB: 128 units, 64 slices, 4 cards.
const gib = 1024

func TestShareGetsItsCard(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.Allocatable(128, 64, 4)
	d, err := contract.DecodeDevices(n.object().Annotations[names.DevicesKey])
	if err != nil || len(d.Devices) != 4 || d.MemoryUnitMiB != 1024 || d.SliceCount != 16 {
		t.Fatalf("announced %+v, %v", d, err)
	}
	if got := n.object().Annotations[names.SharedCapacityKey]; got != `{"0":16,"1":16,"2":16,"3":16}` {
		t.Errorf("shared capacity %s", got)
	}
	n.condition(agent.ConditionHealthy, v1.ConditionTrue)
	n.condition(agent.ConditionServing, v1.ConditionTrue)

	p := n.Pod("p", container{Name: "c", Resource: memory, Amount: 8, Cards: []contract.CardAllocation{n.Card(2, 8*gib)}})
	n.Run(p)
	if cards, mib := n.Sees(p, "c"); cards != "2" || mib != "8192" {
		t.Errorf("the container sees card %s with %s MiB", cards, mib)
	}
	n.Until("the pod is marked as assigned", func(context.Context) error {
		if got := n.Get(p).Annotations[names.AssignedKey]; got != "true" {
			return errors.New(got)
		}
		return nil
	})
	// 24 GiB of card 2 are free beside three whole cards; kubelet counts the pod's 8.
	n.Allocatable(128, 64-4, 3)
	n.Told("2/p/c/8192")
	n.Remove(p)
	n.Allocatable(128, 64, 4)
	n.Told()
	n.Check()
}

// What one mode takes is gone for the others while it is taken.
func TestModesWithdrawFromEachOther(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	p := n.Pod("whole", container{Name: "c", Resource: whole, Amount: 2, Cards: []contract.CardAllocation{n.Card(0, 32*gib), n.Card(1, 32*gib)}})
	// From the moment its record is seen; what it is to get stays for it.
	n.Allocatable(64, 32, 4)
	n.Run(p)
	if cards, _ := n.Sees(p, "c"); cards != "0,1" {
		t.Errorf("the container sees %s", cards)
	}
	if ids := n.Kubelet.Holds(p.UID, "c", whole); fmt.Sprint(ids) != "[0 1]" {
		t.Errorf("kubelet counts %v: want the IDs of the cards it gets", ids)
	}
	n.Allocatable(64, 32, 4)
	q := n.Pod("share", container{Name: "c", Resource: memory, Amount: 1, Cards: []contract.CardAllocation{n.Card(2, gib)}})
	n.Run(q)
	n.Allocatable(64, 31, 3)
	n.Remove(p)
	n.Allocatable(128, 63, 3)
	n.Remove(q)
	n.Allocatable(128, 64, 4)
	n.Check()
}

// A second name of whole cards counts the same cards: what one of them hands out, the other has no more.
func TestAlias(t *testing.T) {
	t.Parallel()
	const alias = "enflame-tech.com/gcu"
	both, err := names.WithAlias(alias)
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, func(o *agent.Options) { o.Names = both })
	offers := func(cards, aliased int) {
		t.Helper()
		n.Until("both names offer the cards", func(context.Context) error {
			if got, other := n.Kubelet.Allocatable(whole), n.Kubelet.Allocatable(alias); got != cards || other != aliased {
				return fmt.Errorf("%d by the first name, %d by the second", got, other)
			}
			return nil
		})
	}
	offers(4, 4)
	p := n.Pod("p", container{Name: "c", Resource: alias, Amount: 3, Cards: []contract.CardAllocation{n.Card(1, 32*gib), n.Card(2, 32*gib), n.Card(3, 32*gib)}})
	n.Run(p)
	if cards, _ := n.Sees(p, "c"); cards != "1,2,3" {
		t.Errorf("the container sees %s", cards)
	}
	offers(1, 4) // kubelet counts the three of the pod's own resource itself
	n.Told("1/p/c/32768", "2/p/c/32768", "3/p/c/32768")
	q := n.Pod("q", container{Name: "c", Resource: whole, Amount: 1}) // another scheduler's: the node chooses
	n.Run(q)
	if cards, _ := n.Sees(q, "c"); cards != "0" {
		t.Errorf("the second container sees %s", cards)
	}
	offers(1, 3)
	r := n.Pod("r", container{Name: "c", Resource: alias, Amount: 1})
	if err := n.Kubelet.Admit(r); err == nil {
		t.Error("a fifth card was handed out of four")
	}
	n.Remove(r)
	n.Remove(p)
	offers(4, 3)
	n.Remove(q)
	offers(4, 4)
	n.Check()
}

// A pod's init container asks for more than what runs later. Kubelet counts the larger amount for the pod's life;
// the room is given out all the same.
func TestInitContainersRoomComesBack(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	p := n.Pod("p", container{Name: "i", Resource: memory, Amount: 30, Init: true, Cards: []contract.CardAllocation{n.Card(0, 30*gib)}},
		container{Name: "c", Resource: memory, Amount: 4, Cards: []contract.CardAllocation{n.Card(0, 4*gib)}})
	n.Run(p)
	n.Allocatable(128, 64-15, 3)
	n.Told("0/p/c/4096", "0/p/i/30720")
	n.initialized(p)
	n.Allocatable(128+26, 64-2, 3)
	n.Told("0/p/c/4096")
	q := n.Pod("q", container{Name: "c", Resource: memory, Amount: 28, Cards: []contract.CardAllocation{n.Card(0, 28*gib)}})
	n.Run(q)
	if cards, _ := n.Sees(q, "c"); cards != "0" {
		t.Errorf("the second pod sees %s", cards)
	}
	n.Check()
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	a := n.Pod("a", container{Name: "c", Resource: memory, Amount: 20})
	n.Run(a)
	first, mib := n.Sees(a, "c")
	if mib != "20480" {
		t.Errorf("%s MiB", mib)
	}
	record, err := contract.DecodeAllocation(n.Get(a).Annotations[names.AllocationKey])
	if err != nil || fmt.Sprint(record.Containers[0].Cards[0].Minor) != first {
		t.Fatalf("record %+v, %v; the container sees %s", record, err, first)
	}
	b := n.Pod("b", container{Name: "c", Resource: whole, Amount: 3})
	n.Run(b)
	if cards, _ := n.Sees(b, "c"); strings.Contains(cards, first) || len(cards) != len("0,1,2") {
		t.Errorf("the second pod sees %s, the first %s", cards, first)
	}
	n.event(b.UID, "the node chose its cards")
	// No room is honest: the pod waits, with a reason, and starts when there is room.
	c := n.Pod("c", container{Name: "c", Resource: memory, Amount: 13})
	if err := n.Kubelet.Admit(c); err == nil {
		t.Error("kubelet admitted 13 units where 12 are free")
	}
	n.Remove(c)
	n.Check()
}

func TestRefuseUnrecordedAndEvict(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(o *agent.Options) { o.Unrecorded, o.RefusedFor = agent.Refuse, 200*time.Millisecond })
	yes := true
	pod := func(name string, owner bool) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: name}, Spec: v1.PodSpec{NodeName: n.Name, Containers: []v1.Container{
			{Name: "c", Image: "none", Resources: v1.ResourceRequirements{Limits: limits(memory, 1)}}}}}
		if owner {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r-1", Controller: &yes}}
		}
		return n.Create(p)
	}
	owned, alone := pod("owned", true), pod("alone", false)
	for _, p := range []*v1.Pod{owned, alone} {
		if err := n.Kubelet.Admit(p); err != nil {
			t.Fatal(err)
		}
		if _, err := n.Kubelet.Start(p.UID, "c"); err == nil || !strings.Contains(err.Error(), "container c") || !strings.Contains(err.Error(), names.AllocationKey) {
			t.Errorf("start of a pod without record: %v", err)
		}
		n.event(p.UID, "no annotation "+names.AllocationKey)
	}
	n.Until("the pod that will be made anew is evicted", func(ctx context.Context) error {
		p, err := nodetest.Admin.CoreV1().Pods(n.Namespace).Get(ctx, "owned", metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && p.DeletionTimestamp != nil {
			return nil
		}
		_, _ = n.Kubelet.Start(owned.UID, "c") // kubelet tries again and again
		return errors.New("it is there")
	})
	if n.Get(alone).DeletionTimestamp != nil {
		t.Error("a pod that nobody makes anew was evicted")
	}
}

// A card fails while in use: the units held on it turn unhealthy, the others stay, and what is free elsewhere
// can still be had. It recovers by itself.
func TestCardFailsAndRecovers(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	p := n.Pod("p", container{Name: "c", Resource: memory, Amount: 8, Cards: []contract.CardAllocation{n.Card(1, 8*gib)}})
	q := n.Pod("q", container{Name: "c", Resource: memory, Amount: 8, Cards: []contract.CardAllocation{n.Card(2, 8*gib)}})
	n.Run(p)
	n.Run(q)
	n.Faults("unhealthy 1 a fan is stuck")
	// Free: 24 units of card 2 and 64 of cards 0 and 3; counted: 16.
	n.Allocatable(24+64+16, 12+32, 2)
	for pod, want := range map[*v1.Pod]bool{p: false, q: true} {
		for _, id := range n.Kubelet.Holds(pod.UID, "c", memory) {
			if got := n.Kubelet.Healthy(memory, id); got != want {
				t.Errorf("pod %s: ID %s healthy %t, want %t", pod.Name, id, got, want)
			}
		}
	}
	if m := n.condition(agent.ConditionHealthy, v1.ConditionFalse); !strings.Contains(m, "card 1") || !strings.Contains(m, "a fan is stuck") {
		t.Errorf("condition says %q", m)
	}
	n.event("", "a fan is stuck")
	n.event(p.UID, "a fan is stuck")
	d, err := contract.DecodeDevices(n.object().Annotations[names.DevicesKey])
	if err != nil || d.Devices[1].Health == "" || d.Devices[0].Health != "" {
		t.Errorf("announced %+v, %v", d, err)
	}
	// A new pod of all that is free elsewhere is admitted.
	r := n.Pod("r", container{Name: "c", Resource: memory, Amount: 24, Cards: []contract.CardAllocation{n.Card(2, 24*gib)}})
	n.Run(r)
	n.Remove(r)
	n.Faults()
	n.Allocatable(128, 64-8, 2)
	n.condition(agent.ConditionHealthy, v1.ConditionTrue)
	n.Check()
}

// Case 16: the cards can be listed and their health cannot be asked.
func TestHealthUnknownOffersNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	p := n.Pod("p", container{Name: "c", Resource: memory, Amount: 8, Cards: []contract.CardAllocation{n.Card(1, 8*gib)}})
	n.Run(p)
	n.Faults("unreadable 0", "unreadable 1", "unreadable 2", "unreadable 3")
	// What is held stays healthy: unknown is not broken.
	n.Allocatable(8, 0, 0)
	n.Faults()
	n.Allocatable(128, 60, 3)

	off := newNode(t, func(o *agent.Options) { o.Health.Off = true })
	off.Faults("unreadable 0", "unreadable 1", "unreadable 2", "unreadable 3")
	off.Allocatable(128, 64, 4)
}

func TestUnitChangeWaitsForShares(t *testing.T) {
	t.Parallel()
	unit := int64(0)
	n := newNode(t, func(o *agent.Options) { o.UnitMiB = unit })
	p := n.Pod("p", container{Name: "c", Resource: memory, Amount: 8, Cards: []contract.CardAllocation{n.Card(1, 8*gib)}})
	n.Run(p)
	unit = 102
	n.Restart()
	n.Allocatable(8, 0, 3)
	if m := n.condition(agent.ConditionServing, v1.ConditionFalse); !strings.Contains(m, n.Namespace+"/p") || !strings.Contains(m, "102") {
		t.Errorf("condition says %q", m)
	}
	if cards, _ := n.Sees(p, "c"); cards != "1" { // its container starts again
		t.Errorf("sees %s", cards)
	}
	n.Remove(p)
	n.Allocatable(4*(32*gib/102), 64, 4)
	n.condition(agent.ConditionServing, v1.ConditionTrue)
}

// After an etcd that was restored from an older copy the pod is there and its record is not.
func TestLostRecordIsWrittenAgain(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{agent.Adopt, agent.Refuse} {
		n := newNode(t, func(o *agent.Options) { o.Unrecorded = policy })
		p := n.Pod("p", container{Name: "c", Resource: memory, Amount: 8, Cards: []contract.CardAllocation{n.Card(3, 8*gib)}})
		n.Run(p)
		was := n.Get(p).Annotations[names.AllocationKey]
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, names.AllocationKey)
		if _, err := nodetest.Admin.CoreV1().Pods(n.Namespace).Patch(t.Context(), "p", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		n.Until("the record is back", func(context.Context) error {
			if got := n.Get(p).Annotations[names.AllocationKey]; got != was {
				return fmt.Errorf("%q", got)
			}
			return nil
		})
		n.Check()
	}
}

// A pod is deleted by force: API server, scheduler and kubelet forget it at once, and its processes run on.
func TestForcedDeletionWaitsForProcesses(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	p := n.Pod("p", container{Name: "c", Resource: whole, Amount: 1, Cards: []contract.CardAllocation{n.Card(0, 32*gib)}})
	n.Run(p)
	n.cgroup(p, true)
	n.Remove(p)
	n.Allocatable(96, 48, 3)
	q := n.Pod("q", container{Name: "c", Resource: whole, Amount: 1, Cards: []contract.CardAllocation{n.Card(0, 32*gib)}})
	if err := n.Kubelet.Admit(q); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() {
		_, err := n.Kubelet.Start(q.UID, "c")
		started <- err
	}()
	select {
	case err := <-started:
		t.Fatalf("started beside the processes of the former holder: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	n.cgroup(p, false)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	n.Check()
}

func TestSharingIsSwitchedOff(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.Allocatable(128, 64, 4)
	n.label(names.SharingLabel, "false")
	n.Allocatable(0, 0, 4)
	n.label(names.SharingLabel, "true")
	n.Allocatable(128, 64, 4)
}

type probe struct{ err error }

func (p probe) Resolves(context.Context, string, string) error { return p.err }

// An engine that is not known to resolve tickets: whole cards only, and the node says why.
func TestEngineWithoutCDI(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(o *agent.Options) { o.Engine = probe{errors.New("enable_cdi = false")} })
	n.Allocatable(0, 0, 4)
	if m := n.condition(agent.ConditionServing, v1.ConditionFalse); !strings.Contains(m, "enable_cdi") {
		t.Errorf("condition says %q", m)
	}
}

// A card that is closed until a time opens by itself.
func TestCordonEnds(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.Allocatable(128, 64, 4)
	until := time.Now().Add(time.Hour)
	cordon := func(c contract.Cordon) {
		text, err := contract.EncodeCordon(c)
		if err != nil {
			t.Fatal(err)
		}
		n.annotate(names.CordonKey, text)
	}
	cordon(contract.Cordon{Cards: []contract.CordonedCard{{Minor: 1, Until: &until}, {Minor: 2, Reason: "fan"}}})
	n.Allocatable(64, 32, 2)
	until = time.Now().Add(-time.Second)
	cordon(contract.Cordon{Cards: []contract.CordonedCard{{Minor: 1, Until: &until}, {Minor: 2, Reason: "fan"}}})
	n.Allocatable(96, 48, 3)
	n.event("", "card 1 takes pods again")
	if c, err := contract.DecodeCordon(n.object().Annotations[names.CordonKey]); err != nil || len(c.Cards) != 1 || c.Cards[0].Minor != 2 {
		t.Errorf("cordon %+v, %v", c, err)
	}
}

func TestUnitTooFine(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(o *agent.Options) { o.UnitMiB = 10 })
	n.Allocatable(0, 64, 4)
	if m := n.condition(agent.ConditionServing, v1.ConditionFalse); !strings.Contains(m, "the smallest unit that fits is 0.1 GiB") {
		t.Errorf("condition says %q", m)
	}
	forced := newNode(t, func(o *agent.Options) { o.UnitMiB, o.ForceUnit = 10, true })
	forced.Allocatable(4*3276, 64, 4)
}

// What a restart and idling cost the API server (docs/node.md).
func TestAPIBudget(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.Allocatable(128, 64, 4)
	n.condition(agent.ConditionHealthy, v1.ConditionTrue)
	n.condition(agent.ConditionServing, v1.ConditionTrue)
	n.Stop()
	n.requests.reset()
	n.Start()
	n.Allocatable(128, 64, 4)
	n.Until("the node was read again", func(context.Context) error {
		if got := n.requests.count("GET nodes"); got < 10 {
			return fmt.Errorf("%d times", got)
		}
		return nil
	})
	got := n.requests.all()
	for what, most := range map[string]int{"LIST pods": 1, "WATCH pods": 1} {
		if got[what] > most {
			t.Errorf("%s: %d times", what, got[what])
		}
		delete(got, what)
	}
	delete(got, "GET nodes") // as often as NodeInterval says
	if len(got) > 0 {
		t.Errorf("a restart without any change also did %v", got)
	}
}

// With device specs kubelet itself passes whole cards: its IDs have to be the record's cards.
func TestPassDeviceSpecs(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(o *agent.Options) { o.PassDeviceSpecs = true })
	n.Allocatable(128, 64, 4)
	p := n.Pod("p", container{Name: "c", Resource: whole, Amount: 2, Cards: []contract.CardAllocation{n.Card(2, 32*gib), n.Card(3, 32*gib)}})
	n.prefers("2", "3")
	if err := n.Kubelet.Admit(p); err != nil {
		t.Fatal(err)
	}
	if got := n.devices(p); got != "/dev/gcu2 /dev/gcu3 /dev/gcuctl" {
		t.Errorf("kubelet passes %s", got)
	}
	// A record that came after kubelet's choice, and says something else.
	q := n.Pod("q", container{Name: "c", Resource: whole, Amount: 1})
	if err := n.Kubelet.Admit(q); err != nil {
		t.Fatal(err)
	}
	chosen := n.Kubelet.Holds(q.UID, "c", whole)[0]
	other := map[string]int{"0": 1, "1": 0}[chosen]
	record, err := contract.EncodeAllocation(contract.Allocation{Node: n.Name, Containers: []contract.ContainerAllocation{{Name: "c", Cards: []contract.CardAllocation{n.Card(other, 32*gib)}}}})
	if err != nil {
		t.Fatal(err)
	}
	n.annotatePod(q, names.AllocationKey, record)
	if _, err := n.Kubelet.Start(q.UID, "c"); err == nil || !strings.Contains(err.Error(), "kubelet passes it the cards "+chosen) {
		t.Errorf("started, or refused with %v", err)
	}
	n.Remove(q)
	// Without a record it gets what kubelet chose.
	r := n.Pod("r", container{Name: "c", Resource: whole, Amount: 1})
	n.Run(r)
	if ids, got := n.Kubelet.Holds(r.UID, "c", whole), n.devices(r); got != "/dev/gcu"+ids[0]+" /dev/gcuctl" {
		t.Errorf("ID %v, kubelet passes %s", ids, got)
	}
	if d, err := contract.DecodeAllocation(n.Get(r).Annotations[names.AllocationKey]); err != nil || fmt.Sprint(d.Containers[0].Cards[0].Minor) != n.Kubelet.Holds(r.UID, "c", whole)[0] {
		t.Errorf("record %+v, %v", d, err)
	}
	n.Check()
}

// Docker resolves no CDI names: whole cards by environment and device specs, no shares.
func TestDocker(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(o *agent.Options) { o.Engine = agent.CRIProbe{} })
	n.engine("docker://28.2.2")
	n.Allocatable(0, 0, 4)
	n.Until("the node says why", func(context.Context) error {
		if m := n.condition(agent.ConditionServing, v1.ConditionFalse); !strings.Contains(m, "docker carries no pod identity") {
			return errors.New(m)
		}
		return nil
	})
	p := n.Pod("p", container{Name: "c", Resource: whole, Amount: 1, Cards: []contract.CardAllocation{n.Card(2, 32*gib)}})
	n.prefers("2")
	if err := n.Kubelet.Admit(p); err != nil {
		t.Fatal(err)
	}
	o := n.StartContainer(p, "c")
	if len(o.CDIDevices) != 0 || o.Envs[contract.EnvVisibleDevices] != "2" || n.devices(p) != "/dev/gcu2 /dev/gcuctl" {
		t.Errorf("kubelet passes %+v", o)
	}
	n.engine("containerd://2.4.2")
	n.Allocatable(96, 48, 4)
}
