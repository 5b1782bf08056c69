package demo

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSelectedLabels(t *testing.T) {
	t.Parallel()
	term := func(key string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpExists}}}
	}
	pods := []result{
		{pod: &corev1.Pod{}},
		{pod: &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"enflame.com/gcu.model": "S60", "zone": "a"}}}},
		{pod: &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term("enflame.com/gcu.model"), term("enflame.com/gcu.count")}},
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: term("enflame.com/gcu.product")}},
		}}}}},
	}
	want := []string{"enflame.com/gcu.count", "enflame.com/gcu.model", "enflame.com/gcu.product"}
	if diff := cmp.Diff(want, selected(pods, names)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhoWroteALabel(t *testing.T) {
	t.Parallel()
	fields := func(by, key string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: by, FieldsV1: &metav1.FieldsV1{Raw: fmt.Appendf(nil, `{"f:metadata":{"f:labels":{".":{},"f:%s":{}}}}`, key)}}
	}
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n", Labels: map[string]string{"enflame.com/gcu.model": "S60", "enflame.com/gcu.product": "AAAA", "zone": "a"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "none"}, fields(discovery, "enflame.com/gcu.model"), fields("kubectl-label", "enflame.com/gcu.product")},
	}}
	got := labelsOf([]corev1.Node{node}, []string{"enflame.com/gcu.count", "enflame.com/gcu.model", "enflame.com/gcu.product", "zone"})
	want := []label{
		{"n", "enflame.com/gcu.model", "S60", discovery},
		{"n", "enflame.com/gcu.product", "AAAA", "kubectl-label"},
		{"n", "zone", "a", ""},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(label{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if errs := judgeLabels(got); len(errs) != 2 {
		t.Errorf("%v: want the two that somebody else wrote", errs)
	}
}
