package scheduler_test

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Case 09: the Binding was stored and its answer lost. The pod keeps its charge and its record, is not
// bound twice, and the next pod waits. In the mirror nothing was stored and the room comes back.
func TestCase09LostAnswer(t *testing.T) {
	for name, what := range map[string]fault{"answered with 504": lost, "connection cut": cut} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, machine("n0", 1), machine("n1", 16))
			f := newFaults(map[string][]fault{"p": {what}})
			r := e.startScheduler(f.wrap)
			// The first pods a scheduler finds are written to, to fence off its predecessor; p comes after.
			e.create(pod("first", gcuMemory, "1", selecting("kubernetes.io/hostname", "n0")))
			e.bound("first")
			e.create(pod("p", gcuMemory, "12"))
			record(t, e.bound("p"))
			e.create(pod("q", gcuMemory, "8"))
			want(t, e.pending("q"), "largest free share on a card is 4 units, 8 asked")
			if n := f.bindings("p"); n != 1 {
				t.Errorf("%d Bindings of p, want 1", n)
			}
			if err := r.ledger.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCase09Mirror(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	// Every try of p fails and is not stored.
	f := newFaults(map[string][]fault{"p": {serverErr, serverErr, serverErr, serverErr, serverErr, serverErr}})
	e.startScheduler(f.wrap)
	e.create(pod("p", gcuMemory, "12"))
	e.until("a Binding of p failed", func(context.Context) bool { return f.bindings("p") > 0 })
	e.delete("p")
	e.create(pod("q", gcuMemory, "16"))
	e.bound("q")
}

// A Binding that fails once is tried again, and the pod ends bound with a record.
func TestBindingIsTriedAgain(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	f := newFaults(map[string][]fault{"a": {throttled, throttled}, "b": {serverErr}})
	r := e.startScheduler(f.wrap)
	e.create(pod("a", gcuMemory, "8"), pod("b", gcuMemory, "8"))
	record(t, e.bound("a"))
	record(t, e.bound("b"))
	e.until("both are charged and nothing is in doubt", func(context.Context) bool {
		return r.ledger.Node("n1").Cards[0].UsedMiB == 16*1024 && len(r.ledger.Doubtful()) == 0
	})
}

// The API server refuses a Binding that names a version of the pod from before any later write: this
// is what makes a Binding that is still on its way harmless once the pod was written to.
func TestBindingOfAnOldVersionIsRefused(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	e.create(pod("p", gcuMemory, "8", scheduledBy("nobody")))
	old := e.get("p")
	e.annotate("p", "example.com/any", "write")
	config, err := cluster.ConfigForServiceAccount("kube-system", "gcu-scheduler")
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "p", UID: old.UID, ResourceVersion: old.ResourceVersion},
		Target:     v1.ObjectReference{Kind: "Node", Name: "n1"},
	}
	err = client.CoreV1().Pods(e.namespace).Bind(t.Context(), binding, metav1.CreateOptions{})
	if err == nil {
		t.Fatal("the Binding was stored")
	}
	want(t, err.Error(), "Precondition failed")
	if now := e.get("p"); now.Spec.NodeName != "" {
		t.Errorf("the pod is on %s", now.Spec.NodeName)
	}
	binding.ResourceVersion = e.get("p").ResourceVersion
	if err := client.CoreV1().Pods(e.namespace).Bind(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Errorf("the Binding of the present version: %v", err)
	}
}

// A leader dies in the middle of a burst and a standby goes on: the cards are filled to the last unit
// and not beyond.
func TestFailOverInABurst(t *testing.T) {
	e := newEnv(t, machine("n1", 16, 16), machine("n2", 16, 16))
	leader, standby := e.startScheduler(nil), e.startStandby(nil)
	for i := range 40 {
		e.create(pod(fmt.Sprintf("p%02d", i), gcuMemory, "4"))
	}
	e.until("some are bound", func(ctx context.Context) bool { return len(e.boundPods(ctx)) >= 4 })
	leader.stop()
	standby.lead()
	cards := map[string]int64{"n1/0": 16 << 10, "n1/1": 16 << 10, "n2/0": 16 << 10, "n2/1": 16 << 10}
	e.until("16 pods are bound", func(ctx context.Context) bool {
		bound := e.boundPods(ctx)
		if len(bound) > 0 {
			assertNotOversold(t, bound, cards)
		}
		return len(bound) == 16
	})
	e.create(pod("more", gcuMemory, "4"))
	want(t, e.pending("more"), "largest free share on a card is 0 units, 4 asked")
}

func (e *env) boundPods(ctx context.Context) []v1.Pod {
	list, err := admin.CoreV1().Pods(e.namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		return nil
	}
	return list.Items
}
