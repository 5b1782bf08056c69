package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A waiting pod is bound within a second of the event that made room for it, by hints and the ledger's
// own wake-up alone: the periodic flush is an hour away. Ten times in a row; the slowest counts. The
// bound is generous against the few tens of milliseconds it takes, since this is a promise to users and
// not a measurement.
func TestWaitingPodWakesWithinASecond(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	e.startScheduler(nil)
	e.create(pod("p0", gcuMemory, "16"))
	e.bound("p0")
	watcher, err := admin.CoreV1().Pods(e.namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	type times struct{ deleted, bound time.Time }
	seen := map[string]*times{}
	next := func() {
		select {
		case ev, ok := <-watcher.ResultChan():
			if !ok {
				t.Fatal("the watch ended")
			}
			p, isPod := ev.Object.(*v1.Pod)
			if !isPod {
				t.Fatalf("the watch brought %T", ev.Object)
			}
			at := seen[p.Name]
			if at == nil {
				at = new(times)
				seen[p.Name] = at
			}
			if ev.Type == "DELETED" {
				at.deleted = time.Now()
			}
			if p.Spec.NodeName != "" && at.bound.IsZero() {
				at.bound = time.Now()
			}
		case <-time.After(patience):
			t.Fatal("nothing happens any more")
		}
	}
	var waits []time.Duration
	for i := range 10 {
		name, after := fmt.Sprintf("p%d", i), fmt.Sprintf("p%d", i+1)
		e.create(pod(after, gcuMemory, "16"))
		e.pending(after)
		e.delete(name)
		for seen[name] == nil || seen[name].deleted.IsZero() || seen[after] == nil || seen[after].bound.IsZero() {
			next()
		}
		waits = append(waits, seen[after].bound.Sub(seen[name].deleted))
	}
	slices.Sort(waits)
	t.Logf("from deletion to Binding: median %s, slowest %s", waits[len(waits)/2], waits[len(waits)-1])
	if slowest := waits[len(waits)-1]; slowest > time.Second {
		t.Errorf("slowest wake-up %s, want at most 1s: %v", slowest, waits)
	}
}

// Room that comes by a node event wakes pods too: a card that recovers, and a node that joins.
func TestNodeEventsWake(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	e.startScheduler(nil)
	if err := e.nodes.SetFault(t.Context(), "n1", "card-fail=0"); err != nil {
		t.Fatal(err)
	}
	e.until("the card is sick", func(ctx context.Context) bool {
		n, err := admin.CoreV1().Nodes().Get(ctx, "n1", metav1.GetOptions{})
		return err == nil && n.Status.Allocatable.Name(gcuMemory, "").Value() == 0
	})
	e.create(pod("a", gcuMemory, "8"))
	want(t, e.pending("a"), "1 GCU cards unhealthy")
	if err := e.nodes.SetFault(t.Context(), "n1", ""); err != nil {
		t.Fatal(err)
	}
	e.bound("a")
	e.create(pod("big", gcuMemory, "32"))
	want(t, e.pending("big"), "1 share larger than the node's GCU cards")
	if err := e.nodes.Add(t.Context(), machine("n2", 48)); err != nil {
		t.Fatal(err)
	}
	e.names = append(e.names, "n2")
	if node := e.bound("big").Spec.NodeName; node != "n2" {
		t.Errorf("big is on %s", node)
	}
}
