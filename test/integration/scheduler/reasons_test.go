package scheduler_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/internal/contract"
)

// Reasons add up over nodes and carry numbers; the nearest miss says by how much.
func TestReasonsAddUpAndCarryNumbers(t *testing.T) {
	e := newEnv(t, machine("n1", 20), machine("n2", 20), preset(t, "t10x8", "n3"))
	e.startScheduler(nil)
	e.create(
		pod("a", gcuMemory, "3", selecting("kubernetes.io/hostname", "n1")),
		pod("b", gcuMemory, "4", selecting("kubernetes.io/hostname", "n2")),
	)
	e.bound("a")
	e.bound("b")
	e.create(pod("big", gcuMemory, "18"))
	message := e.pending("big")
	want(t, message, "0/3 nodes are available", "2 no card with enough free GCU memory",
		"1 share larger than the node's GCU cards", "largest free share on a card is 17 units, 18 asked")

	// n1 has one card, which is in use: it is short of cards for good, so no near miss but no pair either.
	e.create(pod("pair", gcu, "2", annotated(names.TopologyKey, contract.TopologySameSwitch), selecting("kubernetes.io/hostname", "n1")))
	want(t, e.pending("pair"), "1 fewer than 2 GCU cards on the node", "2 node(s) didn't match Pod's node affinity/selector")
}

func TestNoSameSwitchPairFree(t *testing.T) {
	e := newEnv(t, preset(t, "s60x8-2sw", "n1"))
	e.startScheduler(nil)
	// Three of each switch's four cards go, so two are free on different switches.
	e.create(pod("a", gcu, "3", annotated(names.TopologyKey, contract.TopologySameSwitch)), pod("b", gcu, "3", annotated(names.TopologyKey, contract.TopologySameSwitch)))
	e.bound("a")
	e.bound("b")
	e.create(pod("pair", gcu, "2", annotated(names.TopologyKey, contract.TopologySameSwitch)))
	want(t, e.pending("pair"), "1 no same-switch pair free", "largest free same-switch group is 1 card, 2 asked",
		"it would fit with enflame.com/gcu-topology=best-effort")
	e.create(pod("loose", gcu, "2"))
	e.bound("loose")
}

// Mistakes in a request name the field, the value and what is allowed, and nothing is granted.
func TestMistakesAreNamed(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	e.startScheduler(nil)
	tests := map[string]struct {
		pod  *v1.Pod
		want []string
	}{
		"bytes":    {pod("bytes", gcuMemory, "8Gi"), []string{"8Gi is 8589934592 units of 1 GiB; write 8"}},
		"policy":   {pod("policy", gcuMemory, "8", annotated(names.PolicyKey, "bin-pack")), []string{`enflame.com/gcu-policy "bin-pack": want binpack, spread`}},
		"topology": {pod("topology", gcu, "1", annotated(names.TopologyKey, "switch")), []string{`enflame.com/gcu-topology "switch": want best-effort, same-switch, same-numa, none`}},
		"cards":    {pod("cards", gcuMemory, "5", annotated(names.CardsKey, "2")), []string{"want a multiple of enflame.com/gcu-cards, which is 2"}},
		"uuid":     {pod("uuid", gcuMemory, "5", annotated(names.UseUUIDKey, "X1")), []string{"enflame.com/use-gcu-uuid", "GCU-X1", "no node has this card"}},
		"kinds": {pod("kinds", gcuMemory, "5", func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Limits[sharedGCU] = *p.Spec.Containers[0].Resources.Limits.Name(gcuMemory, "")
		}), []string{"one container may ask for one kind only"}},
	}
	for name, tt := range tests {
		e.create(tt.pod)
		want(t, e.pending(name), tt.want...)
	}
	// A corrected annotation wakes the pod.
	patch := []byte(`{"metadata":{"annotations":{"enflame.com/gcu-policy":"spread"}}}`)
	if _, err := admin.CoreV1().Pods(e.namespace).Patch(t.Context(), "policy", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	e.bound("policy")
}

// A node whose agent has not registered the resource says so rather than "insufficient".
func TestAgentNotRegistered(t *testing.T) {
	m := machine("n1", 16)
	e := newEnv(t)
	devices, err := contract.EncodeDevices(m.Devices)
	if err != nil {
		t.Fatal(err)
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n1", Labels: map[string]string{names.SharingLabel: "true"}, Annotations: map[string]string{names.DevicesKey: devices},
	}}
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.names = append(e.names, "n1")
	e.startScheduler(nil)
	tolerate := func(p *v1.Pod) { p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}} }
	e.create(pod("p", gcuMemory, "8", tolerate))
	want(t, e.pending("p"), "1 GCU node agent not registered with kubelet")
}
