package operator_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	v1 "github.com/topscloud/topscloud/operator/api/v1"
)

const samples = "../../../operator/api/v1/testdata"

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(samples, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// remove deletes a resource when the test is over.
func remove(t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() {
		if err := resources.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

// TestSchemaIsStructural: a CRD that the API server has doubts about is established all the same, and says so in a
// condition.
func TestSchemaIsStructural(t *testing.T) {
	crds := objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	crd, err := crds.Get(t.Context(), v1.Plural+"."+v1.GroupName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, c := range conditions {
		got[c.(map[string]any)["type"].(string)] = c.(map[string]any)["status"]
	}
	if diff := cmp.Diff(map[string]any{"Established": "True", "NamesAccepted": "True"}, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// TestResourcesApplyUnchanged creates and applies the resources of the guide and others with kubectl, which refuses
// unknown fields, and reads them back.
func TestResourcesApplyUnchanged(t *testing.T) {
	for _, file := range []string{"guide.json", "alias.json", "two.json", "empty.json"} {
		t.Run(file, func(t *testing.T) {
			text := read(t, file)
			var want map[string]any
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			name := want["metadata"].(map[string]any)["name"].(string)
			remove(t, name)
			path := filepath.Join(samples, file)
			for _, step := range []struct{ verb, want string }{{"create", "created"}, {"apply", "configured"}, {"apply", "unchanged"}} {
				out, err := command(t.Context(), "", step.verb, "-f", path)
				if line := "gcuresource.topsops.enflame.com/" + name + " " + step.want; err != nil || !strings.Contains(out, line) {
					t.Fatalf("kubectl %s: %q, error %v: want %q", step.verb, out, err, line)
				}
			}
			stored, err := resources.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want["spec"], stored.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if out, err := command(t.Context(), "", "diff", "-f", path); err != nil || out != "" {
				t.Errorf("kubectl diff: %q, error %v: want nothing", out, err)
			}
		})
	}
}

// TestColumns compares kubectl get gr with what the guide prints.
func TestColumns(t *testing.T) {
	remove(t, "enflame-gcu-resource")
	if out, err := command(t.Context(), read(t, "guide.json"), "create", "-f", "-"); err != nil {
		t.Fatal(err, out)
	}
	columns := func(want string) {
		t.Helper()
		out, err := command(t.Context(), "", "get", "gr")
		if err != nil || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("kubectl get gr prints\n%swith error %v: want %s", out, err, want)
		}
	}
	// No operator has seen it yet.
	columns(`^NAME +READY +STATUS +AGE\nenflame-gcu-resource +\d+s\n$`)

	stored, err := resources.Get(t.Context(), "enflame-gcu-resource", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := &v1.GcuResource{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(stored.Object, r, true); err != nil {
		t.Fatal(err)
	}
	r.Status = v1.GcuResourceStatus{
		ClusterGCUNodes: []string{"sse-lab-inspur-048"}, ObservedGeneration: r.Generation, Phase: v1.Running,
		Conditions:       []v1.Condition{{Action: v1.DeployAction, Progress: 100, Status: "success", LastUpdateTime: metav1.Now().Rfc3339Copy()}},
		ReadyResource:    r.Spec.ReadyResource(r.Spec.Deployed()...),
		ResourceStatuses: []v1.ResourceStatus{{Name: v1.KindNFD, Status: v1.Running, OwnResources: []v1.OwnResource{{Group: "apps", Version: "v1", Kind: "DaemonSet", Name: "nfd"}}}},
		Notices:          []v1.Notice{{Reason: v1.NotManaged, Message: strings.Join(r.Spec.Unmanaged(), ", ")}},
	}
	// The status is written apart from the rest: this change of the spec has to be without effect.
	was := stored.Object["spec"]
	want := r.Status.DeepCopy()
	r.Spec = v1.GcuResourceSpec{}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
	if err != nil {
		t.Fatal(err)
	}
	stored, err = resources.UpdateStatus(t.Context(), &unstructured.Unstructured{Object: content}, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(was, stored.Object["spec"]); diff != "" {
		t.Errorf("writing the status changed the spec (-want +got):\n%s", diff)
	}
	back := &v1.GcuResource{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(stored.Object, back, true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, &back.Status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	columns(`^NAME +READY +STATUS +AGE\nenflame-gcu-resource +5/5 +Running +\d+s\n$`)
}
