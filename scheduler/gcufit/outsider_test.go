package gcufit

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/internal/contract"
)

// Case 10: one pod's record is unreadable: no new share on its node, the next node is used, one event
// names the pod, and the node recovers by itself.
func TestUnreadableRecord(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib), ledgertest.Node("n2", 16*gib))
	recorder := events.NewFakeRecorder(10)
	f.core.problems.recorder = recorder
	bad := ledgertest.Pod("p", ledgertest.Memory(12), ledgertest.Recorded("n1", ledgertest.Share("app", "n1", 0, 12*gib)))
	text := bad.Annotations[ledgertest.Names.AllocationKey]
	bad.Annotations[ledgertest.Names.AllocationKey] = text[:len(text)-4]
	f.create(bad, ledgertest.Pod("q", ledgertest.Memory(2)))
	f.deliverAll()
	f.core.changed(t.Context(), "n1") // said once, however often it is looked at
	if !f.run("q") || f.w.pods["q"].Spec.NodeName != "n2" {
		t.Errorf("q is on node %q, want n2", f.w.pods["q"].Spec.NodeName)
	}
	if n := len(recorder.Events); n != 1 {
		t.Fatalf("%d events, want 1", n)
	}
	if e := <-recorder.Events; !strings.Contains(e, "GCURecordUnusable") || !strings.Contains(e, "node n1") {
		t.Errorf("event %s", e)
	}
	f.w.write(f.w.pods["p"], ledgertest.Annotate(ledgertest.Names.AllocationKey, text))
	f.deliverAll()
	f.create(ledgertest.Pod("r", ledgertest.Memory(4)))
	f.w.pods["r"].Spec.NodeSelector = map[string]string{"pool": "n1"}
	f.deliverAll()
	if !f.run("r") {
		t.Error("the node stays closed after the record was repaired")
	}
}

// Case 11: a tenant writes records into the pod's template. They are overwritten in the write that binds
// the pod; and a request made of annotations alone is none.
func TestForgedRecord(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib, 16*gib, 16*gib, 16*gib))
	n := ledgertest.Names
	forged := ledgertest.Pod("p", ledgertest.Slices(1), ledgertest.Recorded("n1", ledgertest.Exclusive("app", "n1", 3, 16*gib)))
	forged.Spec.NodeName = ""
	for key, value := range map[string]string{n.AssignedMinorKey: "3", n.RequestSizeKey: "32", n.AssignedKey: "true", n.AssignedTimeKey: "0"} {
		forged.Annotations[key] = value
	}
	f.create(forged)
	f.deliverAll()
	if !f.run("p") {
		t.Fatal("p is not bound")
	}
	got := f.w.pods["p"].Annotations
	record, err := contract.DecodeAllocation(got[n.AllocationKey])
	if err != nil {
		t.Fatal(err)
	}
	card := record.Containers[0].Cards[0]
	if card.Whole || card.MemoryMiB != 16*gib/6 {
		t.Errorf("record %+v", record)
	}
	if got[n.RequestSizeKey] != "1" || got[n.AssignedKey] != "false" || got[n.AssignedTimeKey] == "0" {
		t.Errorf("older keys %v", got)
	}
	alone := ledgertest.Pod("alone", ledgertest.Annotate(n.RequestSizeKey, "32"), ledgertest.Annotate(n.AllocationKey, got[n.AllocationKey]))
	if _, s := f.plugin.PreFilter(t.Context(), newState(), alone, nil); !s.IsSkip() {
		t.Errorf("a pod without limits: %v", s)
	}
}

// Case 05: the init phase is charged while it lasts, and its room comes back when it is over.
func TestInitContainerGivesBack(t *testing.T) {
	m := ledgertest.Names.ResourceMemory
	f := newFixture(t, ledgertest.Node("n1", 16*gib))
	f.create(ledgertest.Pod("p", ledgertest.Init("init", m, 15), ledgertest.App("a", m, 4), ledgertest.App("b", m, 4)))
	f.deliverAll()
	if !f.run("p") {
		t.Fatal("p does not fit")
	}
	if got := f.used("n1", 0); got != 15*gib {
		t.Errorf("%d MiB while init runs", got)
	}
	f.deliverAll()
	f.w.write(f.w.pods["p"], ledgertest.Initialized)
	f.deliverAll()
	if got := f.used("n1", 0); got != 8*gib {
		t.Errorf("%d MiB afterwards", got)
	}
}
