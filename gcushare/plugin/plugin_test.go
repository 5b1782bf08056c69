package plugin_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// TestTwoContainers is case 01: a pod's containers ask for different slices, each gets its own.
func TestTwoContainers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		asks    []ask
		record  []string
		starts  []string // container=what it sees
		partial int      // starts after which the pod is not yet assigned
	}{
		"1 and 2":             {[]ask{{"a", slice, 1}, {"b", slice, 2}}, []string{"a:0=1024", "b:0=2048"}, []string{"a=0 1024", "b=0 2048"}, 1},
		"2 and 2":             {[]ask{{"a", slice, 2}, {"b", slice, 2}}, []string{"a:0=2048", "b:0=2048"}, []string{"a=0 2048", "b=0 2048"}, 1},
		"the second first":    {[]ask{{"a", slice, 1}, {"b", slice, 2}}, []string{"a:0=1024", "b:0=2048"}, []string{"b=0 2048", "a=0 1024"}, 1},
		"one asks nothing":    {[]ask{{"log", slice, 0}, {"b", slice, 3}}, []string{"b:0=3072"}, []string{"log=", "b=0 3072"}, 1},
		"two kinds":           {[]ask{{"a", slice, 1}, {"b", memory, 2}}, []string{"a:0=1024", "b:0=2048"}, []string{"a=0 1024", "b=0 2048"}, 1},
		"a whole card beside": {[]ask{{"a", slice, 1}, {"b", whole, 1}}, []string{"a:0=1024", "b:1=whole"}, []string{"a=0 1024", "b=1 16384"}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, 2)
			p := n.bind(newPod("p", tt.asks...), tt.record...)
			n.admit(p)
			for i, s := range tt.starts {
				if i == tt.partial && n.wasAssigned(p) {
					t.Error("assigned before its last container")
				}
				container, want, _ := strings.Cut(s, "=")
				n.wantStart(p, container, want)
			}
			if !n.wasAssigned(p) {
				t.Error("never assigned")
			}
		})
	}
}

// TestNobodysDevices: a start that belongs to no pod is refused. Allocate itself never refuses.
func TestNobodysDevices(t *testing.T) {
	t.Parallel()
	n := newNode(t, 1)
	p := n.arbiter.Plugin(share.Slices)
	answer, err := p.Allocate(t.Context(), []string{"u0001"})
	if err != nil || len(answer.CdiDevices) != 1 {
		t.Fatalf("Allocate() = %v, %v", answer, err)
	}
	if err := p.PreStart(t.Context(), []string{"u0001"}); err == nil {
		t.Error("devices that no container holds were given")
	}
	if got := n.seen([]string{answer.CdiDevices[0].Name}); got != "unresolved" {
		t.Errorf("the ticket gives %q", got)
	}
}

// TestSameSize is case 02: pods of one size, bound in one order and started in another.
func TestSameSize(t *testing.T) {
	t.Parallel()
	n := newNode(t, 2)
	a := n.bind(newPod("a", ask{"c", memory, 10}), "c:0=10240")
	b := n.bind(newPod("b", ask{"c", memory, 10}), "c:1=10240")
	n.admit(b, a)
	n.wantStart(b, "c", "1 10240")
	n.wantStart(a, "c", "0 10240")

	// a crashes and comes back while c is new; both ask for 10.
	n.kubelet.Exit(a.UID, "c")
	n.kubelet.Remove(b.UID)
	n.api.remove(b.UID)
	c := n.bind(newPod("c", ask{"c", memory, 10}), "c:1=10240")
	n.admit(c)
	n.wantStart(a, "c", "0 10240")
	n.wantStart(c, "c", "1 10240")

	// After a is gone, what is free is on the card that a used.
	n.kubelet.Remove(a.UID)
	n.api.remove(a.UID)
	d := n.bind(newPod("d", ask{"c", memory, 16}), "c:0=16384")
	n.admit(d)
	n.wantStart(d, "c", "0 16384")
}

// TestRandomOrder starts 8 pods of one size in random order, 20 rounds, some after a restart of the agent.
func TestRandomOrder(t *testing.T) {
	t.Parallel()
	n := newNode(t, 4)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 20 {
		var pods []*v1.Pod
		cards := random.Perm(8)
		for i := range 8 {
			name := fmt.Sprintf("r%d-%d", round, i)
			pods = append(pods, n.bind(newPod(name, ask{"c", memory, 8}), fmt.Sprintf("c:%d=8192", cards[i]/2)))
		}
		for _, i := range random.Perm(8) {
			n.admit(pods[i])
		}
		if round%5 == 4 {
			n.restartAgent()
		}
		for _, i := range random.Perm(8) {
			n.wantStart(pods[i], "c", fmt.Sprintf("%d 8192", cards[i]/2))
		}
		for _, p := range pods {
			n.kubelet.Remove(p.UID)
			n.api.remove(p.UID)
		}
		if err := n.arbiter.Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
		if files := n.cdiFiles(); len(files) != 0 {
			t.Fatalf("round %d: files left: %v", round, files)
		}
	}
	if b := n.arbiter.Book(); len(b.Pods) != 0 || len(b.Tickets) != 0 {
		t.Errorf("the book still has %d pods and %d tickets", len(b.Pods), len(b.Tickets))
	}
}

// TestForgedRecords is case 11: nothing in a record is believed beyond the container's own limit, and the
// honest pod beside it is not affected.
func TestForgedRecords(t *testing.T) {
	t.Parallel()
	key := contract.Default().AllocationKey
	tests := map[string]struct {
		annotation func(t *testing.T) string
		want       string
	}{
		"more than its limit":      {func(t *testing.T) string { return record(t, nodeName, "c:3=16384") }, "refused: size"},
		"less than its limit":      {func(t *testing.T) string { return record(t, nodeName, "c:3=512") }, "refused: size"},
		"spread too thick":         {func(t *testing.T) string { return record(t, nodeName, "c:1=1024,2=1024") }, "refused: size"},
		"another node's":           {func(t *testing.T) string { return record(t, "n2", "c:3=1024") }, "refused: record"},
		"a card that is not there": {func(t *testing.T) string { return record(t, nodeName, "c:7=1024") }, "refused: card"},
		"another card's uuid": {func(t *testing.T) string {
			return strings.Replace(record(t, nodeName, "c:3=1024"), "GCU-d", "GCU-z", 1)
		}, "refused: card"},
		"whole for a slice":           {func(t *testing.T) string { return record(t, nodeName, "c:3=whole") }, "refused: record"},
		"of another container":        {func(t *testing.T) string { return record(t, nodeName, "x:3=1024") }, "refused: record"},
		"not a record":                {func(*testing.T) string { return `{"version":"v1"` }, "refused: record"},
		"a newer version":             {func(*testing.T) string { return `{"version":"v9"}` }, "refused: record"},
		"no record at all":            {nil, "refused: no-record"},
		"a card that another has all": {func(t *testing.T) string { return record(t, nodeName, "c:1=1024") }, "refused: room"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, 4)
			full := n.bind(newPod("full", ask{"c", memory, 16}), "c:1=16384")
			forger := newPod("forger", ask{"c", slice, 1})
			if tt.annotation != nil {
				forger.Annotations[key] = tt.annotation(t)
			}
			n.bind(forger)
			honest := n.bind(newPod("honest", ask{"c", slice, 1}), "c:0=1024")
			n.admit(full, forger, honest)
			n.wantStart(full, "c", "1 16384")
			n.wantStart(forger, "c", tt.want)
			n.wantStart(honest, "c", "0 1024")
			// A refused pod holds nothing, and starts once its record is right.
			n.bind(forger.DeepCopy(), "c:0=1024")
			n.wantStart(forger, "c", "0 1024")
		})
	}
}

// TestInitContainers: an init container lends its IDs to the app container, each has its own ticket and
// its own entry; a sidecar keeps its own.
func TestInitContainers(t *testing.T) {
	t.Parallel()
	n := newNode(t, 3)
	always := v1.ContainerRestartPolicyAlways
	p := newPod("p", ask{"init", memory, 4}, ask{"side", memory, 4}, ask{"app", memory, 4})
	p.Spec.InitContainers = p.Spec.Containers[:2:2]
	p.Spec.InitContainers[1].RestartPolicy = &always
	p.Spec.Containers = p.Spec.Containers[2:]
	n.bind(p, "init:0=4096", "side:1=4096", "app:2=4096")
	n.admit(p)
	for range 2 { // again, as after a crash
		n.wantStart(p, "init", "0 4096")
		n.wantStart(p, "side", "1 4096")
		n.wantStart(p, "app", "2 4096")
	}
}

// TestRecreated: a pod of the same name with another UID does not lend its record, however late the
// informer is.
func TestRecreated(t *testing.T) {
	t.Parallel()
	n := newNode(t, 2)
	old := n.bind(newPod("web-0", ask{"c", memory, 8}), "c:0=8192")
	n.admit(old)
	n.wantStart(old, "c", "0 8192")
	n.kubelet.Remove(old.UID)

	again := newPod("web-0", ask{"c", memory, 8})
	again.UID = "uid-new"
	again.Annotations[contract.Default().AllocationKey] = record(t, nodeName, "c:1=8192")
	n.api.mu.Lock() // the informer still has the old one
	n.api.pods = map[types.UID]*v1.Pod{again.UID: again}
	n.api.mu.Unlock()
	n.admit(again)
	n.wantStart(again, "c", "1 8192")
}

// TestWithoutCheckpoint: pod-resources tells the pod, the book the ticket.
func TestWithoutCheckpoint(t *testing.T) {
	t.Parallel()
	n := newNode(t, 2)
	a := n.bind(newPod("a", ask{"x", memory, 2}, ask{"y", memory, 2}), "x:0=2048", "y:1=2048")
	n.admit(a)
	if err := os.WriteFile(n.kubelet.CheckpointPath(), []byte("cut sho"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.wantStart(a, "y", "1 2048")
	n.wantStart(a, "x", "0 2048")
	n.wantStart(a, "x", "0 2048")

	// An init container that lent its IDs cannot be told from the one that has them.
	b := newPod("b", ask{"init", memory, 3}, ask{"app", memory, 3})
	b.Spec.InitContainers, b.Spec.Containers = b.Spec.Containers[:1:1], b.Spec.Containers[1:]
	n.bind(b, "init:0=3072", "app:1=3072")
	n.admit(b)
	if err := os.WriteFile(n.kubelet.CheckpointPath(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.wantStart(b, "app", "refused: identity")
}

// TestRecordChanges: what a container was given stays; the node never moves a holder.
func TestRecordChanges(t *testing.T) {
	t.Parallel()
	n := newNode(t, 2)
	p := n.bind(newPod("p", ask{"c", memory, 2}), "c:0=2048")
	n.admit(p)
	n.wantStart(p, "c", "0 2048")
	n.bind(p.DeepCopy(), "c:1=2048")
	n.wantStart(p, "c", "refused: changed")
	n.bind(p.DeepCopy(), "c:0=2048")
	n.wantStart(p, "c", "0 2048")
}

// TestAPIAway: running pods are started again from what is known; a pod that nobody knows waits.
func TestAPIAway(t *testing.T) {
	t.Parallel()
	n := newNode(t, 2)
	p := n.bind(newPod("p", ask{"c", memory, 2}), "c:0=2048")
	n.admit(p)
	n.wantStart(p, "c", "0 2048")
	n.api.mu.Lock()
	n.api.down = true
	n.api.mu.Unlock()
	n.wantStart(p, "c", "0 2048")
	late := newPod("late", ask{"c", memory, 2})
	n.admit(late)
	n.wantStart(late, "c", "refused: pod")
	if err := n.arbiter.Collect(t.Context()); err != nil {
		t.Errorf("Collect() = %v: what is known needs no API", err)
	}
	n.wantStart(p, "c", "0 2048")
}

// TestRestarts is case 27 (a) and the agent's restarts: files that are gone are there before
// registration, and a book that is gone or cut short is made again from kubelet and the records.
func TestRestarts(t *testing.T) {
	t.Parallel()
	wipe := func(n *node) {
		for _, f := range n.cdiFiles() {
			if err := os.Remove(filepath.Join(n.cdiDir(), f)); err != nil {
				n.t.Fatal(err)
			}
		}
	}
	tests := map[string]func(n *node){
		"just so":             func(*node) {},
		"CDI files are gone":  wipe,
		"the book is gone":    func(n *node) { os.Remove(n.book()) },
		"the book is cut":     func(n *node) { os.Truncate(n.book(), 40) },
		"both are gone":       func(n *node) { wipe(n); os.Remove(n.book()) },
		"the checkpoint also": func(n *node) { os.Truncate(n.kubelet.CheckpointPath(), 10) },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, 2)
			running := n.bind(newPod("running", ask{"c", memory, 10}), "c:0=10240")
			waiting := n.bind(newPod("waiting", ask{"c", memory, 10}), "c:1=10240")
			n.admit(running, waiting)
			n.wantStart(running, "c", "0 10240")
			n.stop()
			damage(n)
			n.startAgent()
			thief := n.bind(newPod("thief", ask{"c", memory, 10}), "c:0=10240")
			n.admit(thief)
			n.wantStart(thief, "c", "refused: room")
			n.wantStart(waiting, "c", "1 10240")
			n.wantStart(running, "c", "0 10240")
		})
	}
}

// TestBookIsSetAside: a book that cannot be read is kept for whoever wants to look, and told.
func TestBookIsSetAside(t *testing.T) {
	t.Parallel()
	n := newNode(t, 1)
	n.stop()
	if err := os.WriteFile(n.book(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.startAgent()
	if n.arbiter.SetAside() == nil {
		t.Error("not told")
	}
	if kept, _ := filepath.Glob(n.book() + ".unread-*"); len(kept) != 1 {
		t.Errorf("set aside: %v", kept)
	}
}

// TestCollect: what kubelet may still start stays, whatever its age.
func TestCollect(t *testing.T) {
	t.Parallel()
	n := newNode(t, 1)
	p := n.bind(newPod("p", ask{"c", memory, 2}), "c:0=2048")
	n.admit(p)
	if err := n.arbiter.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.wantStart(p, "c", "0 2048")
	stray := filepath.Join(n.cdiDir(), "enflame.com-gcushare-t-aaaaaaaaaaaaaaaaaaaaaaaaaa.json")
	others := filepath.Join(n.cdiDir(), "enflame.com-gcu.json")
	for _, path := range []string{stray, others} {
		if err := os.WriteFile(path, []byte(`{}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.arbiter.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := n.cdiFiles(); len(got) != 2 {
		t.Errorf("files %v, want the running container's and the other program's", got)
	}
	n.kubelet.Remove(p.UID)
	n.api.remove(p.UID)
	if err := n.arbiter.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := n.cdiFiles(); len(got) != 1 {
		t.Errorf("files %v, want the other program's only", got)
	}
}
