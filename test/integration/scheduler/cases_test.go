package scheduler_test

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/internal/contract"
)

// Case 03: a standby that saw a pod unbound takes over after the leader bound it and died.
func TestCase03StandbyTakesOver(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	leader, standby := e.startScheduler(nil), e.startStandby(nil)
	e.create(pod("p", gcuMemory, "12"))
	e.bound("p")
	leader.stop()
	standby.lead()
	e.create(pod("q", gcuMemory, "8"))
	want(t, e.pending("q"), "no card with enough free GCU memory", "largest free share on a card is 4 units, 8 asked")
}

// Case 05: 30 units are charged while the init container runs, 8 after it; the waiting pod then binds
// without anybody's help.
func TestCase05InitContainerBesideAppContainers(t *testing.T) {
	e := newEnv(t, machine("n1", 32))
	r := e.startScheduler(nil)
	p := pod("p", gcuMemory, "4", also(container("app2", gcuMemory, "4")), initContainer(container("init", gcuMemory, "30")),
		annotated("gcu.sandbox/init-for", "2s"))
	e.create(p)
	e.bound("p")
	e.create(pod("q", gcuMemory, "20"))
	want(t, e.pending("q"), "no card with enough free GCU memory")
	if used := r.ledger.Node("n1").Cards[0].UsedMiB; used != 30*1024 {
		t.Errorf("%d MiB charged while init runs, want %d", used, 30*1024)
	}
	e.bound("q")
	e.until("8 and 20 units are charged", func(context.Context) bool { return r.ledger.Node("n1").Cards[0].UsedMiB == 28*1024 })
}

// Case 05, variant V: a pod whose only request is in an init container is recorded like any other.
func TestCase05OnlyInitAsks(t *testing.T) {
	e := newEnv(t, machine("n1", 32))
	r := e.startScheduler(nil)
	e.create(pod("v", "", "", initContainer(container("init", gcuMemory, "30")), annotated("gcu.sandbox/init-for", "2s")))
	got := record(t, e.bound("v"))
	if fmt.Sprint(got) != "map[init:[0:30720]]" {
		t.Errorf("record %v", got)
	}
	e.until("nothing is held once init is done", func(context.Context) bool { return r.ledger.Node("n1").Cards[0].UsedMiB == 0 })
}

// Case 06: room comes back on deletion and on success, and a restart does not take a running pod for gone.
func TestCase06RoomComesBack(t *testing.T) {
	e := newEnv(t, machine("n1", 32))
	first := e.startScheduler(nil)
	e.create(pod("p", gcuMemory, "32"))
	e.bound("p")
	first.stop()
	// Nobody watches while p goes.
	e.delete("p")
	e.until("p is gone", func(ctx context.Context) bool {
		_, err := admin.CoreV1().Pods(e.namespace).Get(ctx, "p", metav1.GetOptions{})
		return err != nil
	})
	second := e.startScheduler(nil)
	e.create(pod("q", gcuMemory, "20", annotated("gcu.sandbox/run-for", "500ms"), func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever }))
	e.bound("q")
	e.create(pod("r", gcuMemory, "24")) // binds when q has succeeded
	e.bound("r")
	second.stop()
	e.startScheduler(nil)
	e.create(pod("s", gcuMemory, "9"))
	want(t, e.pending("s"), "no card with enough free GCU memory")
}

// Case 07: while the victim ends, the room is kept for the pod that preempted it; a pod of less priority
// waits, and goes on waiting after.
func TestCase07Preemption(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	priorities(t, map[string]int32{"low": 1, "medium": 10, "high": 100})
	e.startScheduler(nil)
	on := func(class string) option { return func(p *v1.Pod) { p.Spec.PriorityClassName = class } }
	e.create(pod("l", gcuMemory, "12", on("low"), annotated("gcu.sandbox/stop-for", "2s")))
	e.bound("l")
	e.create(pod("h", gcuMemory, "12", on("high")))
	e.until("h has its node nominated", func(context.Context) bool { return e.get("h").Status.NominatedNodeName == "n1" })
	e.create(pod("m", gcuMemory, "8", on("medium")))
	e.pending("m")
	if h := e.get("h"); h.Spec.NodeName != "" {
		t.Fatal("the victim was gone before m was looked at; the test saw nothing")
	}
	e.bound("h")
	want(t, e.pending("m"), "no card with enough free GCU memory")
	list, err := admin.CoreV1().Pods(e.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	assertNotOversold(t, list.Items, map[string]int64{"n1/0": 16 * 1024})
}

// Preemption frees exactly the shares needed: of three low pods one is enough.
func TestPreemptionTakesOneVictim(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	priorities(t, map[string]int32{"low": 1, "high": 100})
	e.startScheduler(nil)
	on := func(class string) option { return func(p *v1.Pod) { p.Spec.PriorityClassName = class } }
	e.create(pod("a", gcuMemory, "4", on("low")), pod("b", gcuMemory, "4", on("low")), pod("c", gcuMemory, "4", on("low")))
	for _, name := range []string{"a", "b", "c"} {
		e.bound(name)
	}
	e.create(pod("fits", gcuMemory, "4", on("high")))
	e.bound("fits")
	e.create(pod("h", gcuMemory, "4", on("high")))
	e.bound("h")
	left, err := admin.CoreV1().Pods(e.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	alive := 0
	for _, p := range left.Items {
		if p.DeletionTimestamp == nil {
			alive++
		}
	}
	if alive != 4 {
		t.Errorf("%d pods are left, want 4: one victim for one pod", alive)
	}
}

// Case 10: a record that cannot be read closes its node, another node takes the pod, one event names
// the culprit, and the node opens again when the record is repaired or the pod is gone.
func TestCase10UnreadableRecord(t *testing.T) {
	broken := map[string]string{
		"minor is no number": `{"version":"v1","node":"n1","containers":[{"name":"main","cards":[{"minor":"0,","uuid":"GCU-n1-0","memoryMiB":12288}]}]}`,
		"no such card":       `{"version":"v1","node":"n1","containers":[{"name":"main","cards":[{"minor":7,"uuid":"GCU-n1-0","memoryMiB":12288}]}]}`,
		"size in words":      `{"version":"v1","node":"n1","containers":[{"name":"main","cards":[{"minor":0,"uuid":"GCU-n1-0","memoryMiB":"twelve"}]}]}`,
		"size below zero":    `{"version":"v1","node":"n1","containers":[{"name":"main","cards":[{"minor":0,"uuid":"GCU-n1-0","memoryMiB":-12}]}]}`,
		"size out of range":  `{"version":"v1","node":"n1","containers":[{"name":"main","cards":[{"minor":0,"uuid":"GCU-n1-0","memoryMiB":99999999999999999999}]}]}`,
		"cut off":            `{"version":"v1","node":"n1","containers":[{"name":"main","ca`,
		"of a later version": `{"version":"v9","node":"n1","containers":[]}`,
		"for another node":   `{"version":"v1","node":"n9","containers":[{"name":"main","cards":[{"minor":0,"uuid":"GCU-n1-0","memoryMiB":12288}]}]}`,
		"of another pod":     `{"version":"v1","node":"n1","containers":[{"name":"other","cards":[{"minor":0,"uuid":"GCU-n1-0","memoryMiB":12288}]}]}`,
	}
	e := newEnv(t, machine("n1", 16), machine("n2", 16))
	r := e.startScheduler(nil)
	e.create(pod("p", gcuMemory, "12", selecting("kubernetes.io/hostname", "n1")))
	good := e.bound("p").Annotations[names.AllocationKey]
	i := 0
	for what, text := range broken {
		t.Run(what, func(t *testing.T) {
			e.annotate("p", names.AllocationKey, text)
			e.until("n1 is closed", func(context.Context) bool { return len(r.ledger.Node("n1").Problems) > 0 })
			name := fmt.Sprintf("q-%d", i)
			i++
			e.create(pod(name, gcuMemory, "2"))
			if node := e.bound(name).Spec.NodeName; node != "n2" {
				t.Errorf("a pod went to %s while n1 is closed", node)
			}
			e.delete(name)
			e.create(pod(name+"-n1", gcuMemory, "2", selecting("kubernetes.io/hostname", "n1")))
			want(t, e.pending(name+"-n1"), "1 node closed: a pod's GCU record cannot be read")
			e.annotate("p", names.AllocationKey, good)
			e.bound(name + "-n1")
			e.delete(name + "-n1")
		})
	}
	events, err := admin.EventsV1().Events(e.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for _, ev := range events.Items {
		if ev.Reason != "GCURecordUnusable" {
			continue
		}
		told[ev.Note]++
		if ev.Regarding.Name != "p" || ev.Related.Name != "n1" {
			t.Errorf("the event is about %s and %s, want p and n1", ev.Regarding.Name, ev.Related.Name)
		}
		want(t, ev.Note, "node n1 takes no new GCU pods until this is repaired or the pod is gone")
	}
	if len(told) != len(broken) {
		t.Errorf("%d events, want one for each of %d faults: %v", len(told), len(broken), told)
	}
	// Gone is as good as repaired.
	e.annotate("p", names.AllocationKey, "{")
	e.delete("p")
	e.create(pod("last", gcuMemory, "16", selecting("kubernetes.io/hostname", "n1")))
	e.bound("last")
}

// Case 13, shares: of two fitting cards binpack takes the fuller, spread the emptier.
func TestCase13PackingOfShares(t *testing.T) {
	e := newEnv(t, machine("n1", 100, 100))
	e.startScheduler(nil)
	e.create(pod("a", gcuMemory, "25", annotated(names.UseUUIDKey, "n1-0")), pod("b", gcuMemory, "50", annotated(names.UseUUIDKey, "GCU-n1-1")))
	e.bound("a")
	e.bound("b")
	e.create(pod("pack", gcuMemory, "20"))
	if got := fmt.Sprint(record(t, e.bound("pack"))); got != "map[main:[1:20480]]" {
		t.Errorf("binpack took %s", got)
	}
	e.create(pod("spread", gcuMemory, "20", annotated(names.PolicyKey, contract.PolicySpread)))
	if got := fmt.Sprint(record(t, e.bound("spread"))); got != "map[main:[0:20480]]" {
		t.Errorf("spread took %s", got)
	}
}

// Case 14: a burst gets what there is and no more, however late events come.
func TestCase14Burst(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	e.startScheduler(nil)
	var burst []*v1.Pod
	for i := range 50 {
		burst = append(burst, pod(fmt.Sprintf("p%02d", i), gcuMemory, "8"))
	}
	e.create(burst...)
	e.until("two pods are bound and the others were turned away", func(ctx context.Context) bool {
		list, err := admin.CoreV1().Pods(e.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		bound, away := 0, 0
		for i := range list.Items {
			if list.Items[i].Spec.NodeName != "" {
				bound++
			} else if scheduled(&list.Items[i]) != "" {
				away++
			}
		}
		if bound > 2 {
			t.Fatalf("%d pods of 8 units bound on a card of 16", bound)
		}
		return bound == 2 && away == 48
	})
}

// Removing the sharing label closes the node for shares at once; whole cards still go.
func TestSharingLabelRemoved(t *testing.T) {
	e := newEnv(t, machine("n1", 16, 16))
	r := e.startScheduler(nil)
	e.create(pod("a", gcuMemory, "4"))
	e.bound("a")
	label(t, "n1", names.SharingLabel, "")
	e.until("the ledger knows", func(context.Context) bool { return !r.ledger.Node("n1").Sharing })
	e.create(pod("b", gcuMemory, "4"))
	want(t, e.pending("b"), "node does not share its GCU cards (label enflame.com/gcushare=true)")
	e.create(pod("w", gcu, "1"))
	e.bound("w")
	label(t, "n1", names.SharingLabel, "true")
	e.bound("b")
}

// A pod bound by another scheduler is charged at once and closes nothing.
func TestUnrecordedPodIsCharged(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	r := e.startScheduler(nil)
	e.create(pod("other", gcuMemory, "12", scheduledBy("default-scheduler")))
	e.bound("other")
	e.until("its limit is set aside", func(context.Context) bool { return r.ledger.Node("n1").Cards[0].UsedMiB == 12*1024 })
	e.create(pod("q", gcuMemory, "8"))
	want(t, e.pending("q"), "no card with enough free GCU memory")
	e.create(pod("small", gcuMemory, "4"))
	e.bound("small")
}

func (e *env) annotate(name, key, value string) {
	e.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	if _, err := admin.CoreV1().Pods(e.namespace).Patch(e.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

// assertNotOversold adds up the records of bound pods against the cards' memory ("node/minor" to MiB).
func assertNotOversold(t *testing.T, pods []v1.Pod, cards map[string]int64) {
	t.Helper()
	held := map[string]int64{}
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName == "" || p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed {
			continue
		}
		a, err := contract.DecodeAllocation(p.Annotations[names.AllocationKey])
		if err != nil {
			t.Errorf("record of %s: %v", p.Name, err)
			continue
		}
		for _, c := range a.Containers {
			for _, card := range c.Cards {
				held[fmt.Sprintf("%s/%d", a.Node, card.Minor)] += card.MemoryMiB
			}
		}
	}
	for card, mib := range held {
		if mib > cards[card] {
			t.Errorf("card %s: %d of %d MiB promised", card, mib, cards[card])
		}
	}
	if len(held) == 0 {
		t.Error("nothing is held at all")
	}
}

// A pod that asks for a share may preempt one that holds the card whole: the agent offers the card's
// units only after that one is gone, and the pod is not told meanwhile that nothing can help.
func TestPreemptionAcrossKinds(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	priorities(t, map[string]int32{"low": 1, "high": 100})
	e.startScheduler(nil)
	on := func(class string) option { return func(p *v1.Pod) { p.Spec.PriorityClassName = class } }
	e.create(pod("whole", gcu, "1", on("low")))
	e.until("the card's units are withdrawn", func(ctx context.Context) bool {
		n, err := admin.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		return err == nil && e.get("whole").Spec.NodeName != "" && n.Status.Allocatable.Name(gcuMemory, "").Value() == 0
	})
	e.create(pod("share", gcuMemory, "8", on("high")))
	e.bound("share")
}
