package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/test/integration/nodetest"
)

// assignment is what older tools read of a container.
type assignment struct {
	Allocated bool  `json:"allocated"`
	Request   int64 `json:"request"`
}

// marked waits until a pod is marked as assigned, and returns its annotations.
func (n *node) marked(pod *v1.Pod) map[string]string {
	n.t.Helper()
	var out map[string]string
	n.Until("pod "+pod.Name+" is marked as assigned", func(context.Context) error {
		if out = n.Get(pod).Annotations; out[names.AssignedKey] != "true" {
			return fmt.Errorf("annotations %v", out)
		}
		return nil
	})
	return out
}

// A pod that the node itself places gets the older single-card keys as one that the scheduler places, where they
// are true, and none where they would mislead.
func TestAdoptedPodsHaveOlderKeys(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	one := n.Pod("one", container{Name: "c", Resource: memory, Amount: 4}, container{Name: "d", Resource: memory, Amount: 2})
	n.Run(one)
	card, _ := n.Sees(one, "c")
	other, _ := n.Sees(one, "d")
	if card != other {
		t.Fatalf("the containers see cards %s and %s: want one card, to which the older keys apply", card, other)
	}
	keys := n.marked(one)
	if keys[names.RequestSizeKey] != "6" || keys[names.AssignedMinorKey] != card || keys[names.AssignedTimeKey] == "" {
		t.Errorf("the pod sees card %s: %v", card, keys)
	}
	var got map[string]assignment
	if err := json.Unmarshal([]byte(keys[contract.AssignedContainersKey]), &got); err != nil || got["c"] != (assignment{true, 4}) || got["d"] != (assignment{true, 2}) {
		t.Errorf("%v, %v", got, err)
	}
	entire := n.Pod("entire", container{Name: "c", Resource: whole, Amount: 1})
	n.Run(entire)
	for _, key := range []string{names.RequestSizeKey, names.AssignedMinorKey, names.AssignedKey, names.AssignedTimeKey, contract.AssignedContainersKey} {
		if value, has := n.Get(entire).Annotations[key]; has {
			t.Errorf("a pod with a whole card has %s = %s", key, value)
		}
	}
	if n.Get(entire).Annotations[names.AllocationKey] == "" {
		t.Error("it has no record")
	}
}

// All annotations of a running pod are lost, as after an etcd that was restored from a copy before its Binding. What
// comes back says that its containers have their cards, and that nobody chose them anew.
func TestLostOlderKeysComeBack(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	p := n.Pod("p", container{Name: "c", Resource: memory, Amount: 8, Cards: []contract.CardAllocation{n.Card(3, 8*gib)}})
	n.Run(p)
	n.marked(p)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null,%q:null}}}`, names.AllocationKey, names.AssignedKey)
	if _, err := nodetest.Admin.CoreV1().Pods(n.Namespace).Patch(t.Context(), "p", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	keys := n.marked(p)
	if keys[names.AssignedMinorKey] != "3" || keys[names.RequestSizeKey] != "8" || keys[names.AllocationKey] == "" {
		t.Errorf("annotations %v", keys)
	}
	n.event(p.UID, "wrote again what its containers have")
}

// A pod's sandbox is made anew: its init container runs once more, with the cards it had.
func TestInitContainerRunsAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	p := n.Pod("p", container{Name: "i", Resource: whole, Amount: 1, Init: true, Cards: []contract.CardAllocation{n.Card(0, 32*gib)}},
		container{Name: "c", Resource: memory, Amount: 4, Cards: []contract.CardAllocation{n.Card(1, 4*gib)}})
	n.Run(p)
	n.initialized(p)
	n.Told("1/p/c/4096")
	again := func() {
		t.Helper()
		n.Kubelet.Exit(p.UID, "c")
		for name, want := range map[string]string{"i": "0", "c": "1"} {
			if got, _ := n.Sees(p, name); got != want {
				t.Errorf("container %s sees card %s, it had %s", name, got, want)
			}
		}
		n.Check()
	}
	again()
	// The card that only the init container needs is another pod's now.
	n.Allocatable(128, 64-2, 4) // three free ones, and that which kubelet counts
	q := n.Pod("q", container{Name: "c", Resource: whole, Amount: 1, Cards: []contract.CardAllocation{n.Card(0, 32*gib)}})
	n.Run(q)
	if got, _ := n.Sees(q, "c"); got != "0" {
		t.Errorf("the second pod sees %s", got)
	}
	n.Kubelet.Exit(p.UID, "c")
	if _, err := n.Kubelet.Start(p.UID, "i"); err == nil {
		t.Error("the init container started on a whole card of another pod")
	}
	if got, _ := n.Sees(p, "c"); got != "1" { // needs no more than it has
		t.Errorf("sees %s", got)
	}
	n.Check()
	n.Remove(q)
	again()
}
