package scheduler_test

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
)

// Pods of an in-tree pod group go through simulated placements, each of which reserves and unreserves.
// Our ledger comes out of that with what is bound and nothing else.
func TestInTreePodGroup(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	e := newEnv(t, machine("n1", 16, 16))
	r := e.startScheduler(nil)
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "g"},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 4},
		}},
	}
	if _, err := admin.SchedulingV1beta1().PodGroups(e.namespace).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	name := "g"
	member := func(i int) *v1.Pod {
		return pod(fmt.Sprintf("m%d", i), gcuMemory, "8", func(p *v1.Pod) {
			p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name}
		})
	}
	for i := range 3 {
		e.create(member(i))
	}
	// Three of four are not enough: nothing is bound and nothing is held. A lone pod of the whole room
	// proves it.
	e.create(pod("lone", gcu, "2", annotated("gcu.sandbox/run-for", "500ms"), func(p *v1.Pod) { p.Spec.RestartPolicy = v1.RestartPolicyNever }))
	e.bound("lone")
	e.until("lone is done", func(context.Context) bool { return e.get("lone").Status.Phase == v1.PodSucceeded })
	e.create(member(3))
	for i := range 4 {
		record(t, e.bound(fmt.Sprintf("m%d", i)))
	}
	e.until("both cards are full", func(context.Context) bool {
		n := r.ledger.Node("n1")
		return n.Cards[0].UsedMiB == 16<<10 && n.Cards[1].UsedMiB == 16<<10 && len(n.Holders()) == 4
	})
}
