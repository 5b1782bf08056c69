package scheduler_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/internal/contract"
)

// One share, one Binding: the record and the older keys are on the pod as soon as it is bound, and the
// container runs.
func TestRecordIsWrittenWithTheBinding(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	e.startScheduler(nil)
	e.create(pod("p", gcuMemory, "8"))
	p := e.bound("p")
	if diff := cmp.Diff(map[string][]string{"main": {"0:8192"}}, record(t, p)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	for key, value := range map[string]string{
		names.RequestSizeKey: "8", names.AssignedMinorKey: "0", names.AssignedKey: "false",
		contract.AssignedContainersKey: `{"main":{"allocated":false,"request":8,"profileID":"","profileName":"","instanceID":"","instanceUUID":""}}`,
	} {
		if p.Annotations[key] != value {
			t.Errorf("annotation %s is %q, want %q", key, p.Annotations[key], value)
		}
	}
	e.until("p runs", func(context.Context) bool { return e.get("p").Status.Phase == v1.PodRunning })
}

// The vendor's example tree: the first pod of two cards gets the tight pair {0,1}, the next {4,5}.
func TestPairsOfTheVendorTree(t *testing.T) {
	e := newEnv(t, preset(t, "s60x8", "tree"))
	e.startScheduler(nil)
	for i, want := range []string{"01", "45"} {
		name := "pair-" + string(rune('a'+i))
		e.create(pod(name, gcu, "2", annotated(names.TopologyKey, contract.TopologySameSwitch)))
		got := ""
		for _, card := range record(t, e.bound(name))["main"] {
			got += card[:1]
		}
		if got != want {
			t.Errorf("%s got cards %s, want %s", name, got, want)
		}
	}
}

// Case 01, the scheduler's half: containers of one pod with different shares, one without any.
func TestCase01DifferentSharesInOnePod(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	e.startScheduler(nil)
	p := pod("p", sharedGCU, "1", also(container("b", sharedGCU, "2")), also(container("log", "", "")))
	e.create(p)
	got := e.bound("p")
	want := map[string][]string{"main": {"0:2730"}, "b": {"0:5460"}}
	if diff := cmp.Diff(want, record(t, got)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	if size := got.Annotations[names.RequestSizeKey]; size != "3" {
		t.Errorf("request size %s, want 3", size)
	}
}

// Pods that name no scheduler belong to the stock one. A DaemonSet pod lands on its node; the corrected
// pod of the guide's section 11.2 does; and the two-node experiment of 11.3 goes where its label says.
func TestStockSchedulerPlacesTheGuidesPods(t *testing.T) {
	e := newEnv(t, machine("node1", 16), machine("node2", 16))
	e.startScheduler(nil)
	label(t, "node1", names.Label(contract.LabelProduct), "AAAA")
	label(t, "node2", names.Label(contract.LabelProduct), "BBBB")
	for value, node := range map[string]string{"BBBB": "node2", "AAAA": "node1"} {
		name := "guide-" + node
		e.create(pod(name, "", "", scheduledBy("default-scheduler"), func(p *v1.Pod) {
			p.Spec.HostNetwork = true
			p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
					MatchExpressions: []v1.NodeSelectorRequirement{{Key: "enflame.com/gcu.product", Operator: v1.NodeSelectorOpIn, Values: []string{value}}},
				}}},
			}}
		}))
		if got := e.bound(name).Spec.NodeName; got != node {
			t.Errorf("the pod that wants %s is on %s, want %s", value, got, node)
		}
	}
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "agent"}},
				Spec: v1.PodSpec{
					NodeSelector: map[string]string{names.PresentLabel: "true"},
					Containers:   []v1.Container{container("main", "", "")},
				},
			},
		},
	}
	if _, err := admin.AppsV1().DaemonSets(e.namespace).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.until("a DaemonSet pod runs on both nodes", func(ctx context.Context) bool {
		ds, err := admin.AppsV1().DaemonSets(e.namespace).Get(ctx, "agent", metav1.GetOptions{})
		return err == nil && ds.Status.NumberReady == 2
	})
	if err := admin.AppsV1().DaemonSets(e.namespace).Delete(t.Context(), "agent", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Quota on extended resources is Kubernetes' own; it holds for ours.
func TestResourceQuota(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	quota := &v1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "gcu"},
		Spec:       v1.ResourceQuotaSpec{Hard: v1.ResourceList{"requests." + gcuMemory: resource.MustParse("10")}},
	}
	if _, err := admin.CoreV1().ResourceQuotas(e.namespace).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.until("the quota is counted", func(ctx context.Context) bool {
		q, err := admin.CoreV1().ResourceQuotas(e.namespace).Get(ctx, "gcu", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0
	})
	e.create(pod("in", gcuMemory, "8"))
	_, err := admin.CoreV1().Pods(e.namespace).Create(t.Context(), pod("over", gcuMemory, "8"), metav1.CreateOptions{})
	if err == nil {
		t.Fatal("a pod beyond the quota was accepted")
	}
	want(t, err.Error(), "exceeded quota: gcu", "used: requests.enflame.com/gcu-memory=8", "limited: requests.enflame.com/gcu-memory=10")
}

// label sets a node's label, an empty value removes it.
func label(t *testing.T, node, key, value string) {
	t.Helper()
	text := `{"metadata":{"labels":{"` + key + `":null}}}`
	if value != "" {
		text = `{"metadata":{"labels":{"` + key + `":"` + value + `"}}}`
	}
	if _, err := admin.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
