package gcufit

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/internal/contract"
)

// A hint sees the event before the feed does, and must judge as if the feed had seen it.
func TestHintsAfterPods(t *testing.T) {
	m := ledgertest.Names.ResourceMemory
	running := []func(*v1.Pod){
		ledgertest.Init("init", m, 16), ledgertest.App("app", m, 4),
		ledgertest.Recorded("n1", ledgertest.Share("init", "n1", 0, 16*gib), ledgertest.Share("app", "n1", 0, 4*gib)),
	}
	tests := map[string]struct {
		units int64
		event func(*fixture, *v1.Pod) (was, now any)
		want  fwk.QueueingHint
	}{
		"the pod is deleted":                       {12, func(f *fixture, p *v1.Pod) (any, any) { f.w.remove(f.w.pods["a"]); f.podInformer.pump(); return p, nil }, fwk.Queue},
		"the pod is deleted and leaves too little": {17, func(f *fixture, p *v1.Pod) (any, any) { f.w.remove(f.w.pods["a"]); f.podInformer.pump(); return p, nil }, fwk.QueueSkip},
		"the pod is said to be deleted and lives":  {12, func(_ *fixture, p *v1.Pod) (any, any) { return p, nil }, fwk.QueueSkip},
		"its init containers are done": {12, func(f *fixture, p *v1.Pod) (any, any) {
			return p, f.w.write(f.w.pods["a"], ledgertest.Initialized)
		}, fwk.Queue},
		"it changes in some other way": {12, func(f *fixture, p *v1.Pod) (any, any) {
			return p, f.w.write(f.w.pods["a"], func(p *v1.Pod) { p.Annotations["note"] = "x" })
		}, fwk.QueueSkip},
		"something that is no pod": {12, func(*fixture, *v1.Pod) (any, any) { return nil, nil }, fwk.Queue},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			node := ledgertest.Node("n1", 16*gib)
			// Kubelet counts the units of init containers to the pod's end, so it must have some to spare.
			node.Status.Allocatable[v1.ResourceName(m)] = *resource.NewQuantity(64, resource.DecimalSI)
			f := newFixture(t, node)
			f.create(ledgertest.Pod("a", running...))
			f.deliverAll()
			was, now := test.event(f, f.w.pods["a"])
			got, err := f.plugin.afterPod(klog.Background(), ledgertest.Pod("q", ledgertest.Memory(test.units)), was, now)
			if err != nil || got != test.want {
				t.Errorf("%v, %v; want %v", got, err, test.want)
			}
			f.deliverAll()
		})
	}
}

func TestHintsAfterNodes(t *testing.T) {
	private := ledgertest.Node("n1", 16*gib)
	delete(private.Labels, ledgertest.Names.SharingLabel)
	tests := map[string]struct {
		node *v1.Node
		pod  *v1.Pod
		want fwk.QueueingHint
	}{
		"a node with room":               {ledgertest.Node("n1", 16*gib), ledgertest.Pod("q", ledgertest.Memory(8)), fwk.Queue},
		"a node too small":               {ledgertest.Node("n1", 4*gib), ledgertest.Pod("q", ledgertest.Memory(8)), fwk.QueueSkip},
		"a node that does not share":     {private, ledgertest.Pod("q", ledgertest.Memory(8)), fwk.QueueSkip},
		"whole cards need no sharing":    {private, ledgertest.Pod("q", ledgertest.Whole(1)), fwk.Queue},
		"a pod that looks for one card":  {ledgertest.Node("n1", 4*gib), ledgertest.Pod("q", ledgertest.Memory(8), ledgertest.Annotate(ledgertest.Names.UseUUIDKey, "x")), fwk.Queue},
		"a pod whose request is invalid": {ledgertest.Node("n1", 16*gib), ledgertest.Pod("q", ledgertest.Memory(8), ledgertest.Annotate(ledgertest.Names.PolicyKey, "x")), fwk.QueueSkip},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			got, err := f.plugin.afterNode(klog.Background(), test.pod, nil, test.node)
			if err != nil || got != test.want {
				t.Errorf("%v, %v; want %v", got, err, test.want)
			}
		})
	}
}

func TestHintsAfterOwnUpdate(t *testing.T) {
	was := ledgertest.Pod("q", ledgertest.Memory(8), ledgertest.Annotate(ledgertest.Names.PolicyKey, "speard"))
	tests := map[string]struct {
		edit func(*v1.Pod)
		want fwk.QueueingHint
	}{
		"a corrected policy":     {ledgertest.Annotate(ledgertest.Names.PolicyKey, "spread"), fwk.Queue},
		"a policy taken away":    {func(p *v1.Pod) { delete(p.Annotations, ledgertest.Names.PolicyKey) }, fwk.Queue},
		"another number of keys": {ledgertest.Annotate("note", "x"), fwk.Queue},
		"a condition":            {ledgertest.Initialized, fwk.QueueSkip},
	}
	f := newFixture(t)
	for name, test := range tests {
		now := was.DeepCopy()
		test.edit(now)
		if got, err := f.plugin.afterOwnUpdate(klog.Background(), was, was, now); err != nil || got != test.want {
			t.Errorf("%s: %v, %v; want %v", name, got, err, test.want)
		}
	}
}

func TestSignPod(t *testing.T) {
	m := ledgertest.Names.ResourceMemory
	base := func(more ...func(*v1.Pod)) *v1.Pod {
		return ledgertest.Pod("p", append([]func(*v1.Pod){ledgertest.Memory(8)}, more...)...)
	}
	other := base()
	other.Name, other.UID, other.Namespace = "other", "uid-other", "elsewhere"
	other.Spec.Containers[0].Name = "renamed"
	tests := map[string]struct {
		pod  *v1.Pod
		same bool
	}{
		"the same request of another pod": {other, true},
		"the default said aloud":          {base(ledgertest.Annotate(ledgertest.Names.PolicyKey, contract.PolicyBinpack)), true},
		"a note":                          {base(ledgertest.Annotate("note", "x")), true},
		"another amount":                  {ledgertest.Pod("p", ledgertest.Memory(9)), false},
		"another kind":                    {ledgertest.Pod("p", ledgertest.Slices(8)), false},
		"another policy":                  {base(ledgertest.Annotate(ledgertest.Names.PolicyKey, contract.PolicySpread)), false},
		"another topology":                {base(ledgertest.Annotate(ledgertest.Names.TopologyKey, contract.TopologySameNUMA)), false},
		"more cards":                      {base(ledgertest.Annotate(ledgertest.Names.CardsKey, "2")), false},
		"a card wanted":                   {base(ledgertest.Annotate(ledgertest.Names.UseUUIDKey, "a")), false},
		"that card not wanted":            {base(ledgertest.Annotate(ledgertest.Names.NoUseUUIDKey, "a")), false},
		"a second container":              {base(ledgertest.App("b", m, 1)), false},
		"an init container":               {base(ledgertest.Init("i", m, 8)), false},
	}
	f := newFixture(t)
	sign := func(p *v1.Pod) string {
		parts, status := f.plugin.SignPod(t.Context(), p)
		if !status.IsSuccess() || len(parts) != 1 {
			t.Fatalf("%v, %v", parts, status)
		}
		return marshal(t, parts[0])
	}
	want := sign(base())
	for name, test := range tests {
		if got := sign(test.pod); (got == want) != test.same {
			t.Errorf("%s: %s, and the first is %s", name, got, want)
		}
	}
	if parts, status := f.plugin.SignPod(t.Context(), ledgertest.Pod("p")); len(parts) > 0 || !status.IsSuccess() {
		t.Errorf("a pod that asks for no GCU: %v, %v", parts, status)
	}
	if _, status := f.plugin.SignPod(t.Context(), base(ledgertest.Annotate(ledgertest.Names.PolicyKey, "x"))); status.IsSuccess() {
		t.Error("a pod with a wrong request is signed")
	}
}
