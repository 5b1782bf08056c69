package manifests_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1 "github.com/topscloud/topscloud/operator/api/v1"

	"github.com/topscloud/topscloud/manifests"
)

func crd(t *testing.T) map[string]any {
	t.Helper()
	text, err := manifests.GcuResourceCRD()
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// at walks down the keys of an object.
func at(t *testing.T, o any, keys ...string) any {
	t.Helper()
	for _, k := range keys {
		m, is := o.(map[string]any)
		if !is || m[k] == nil {
			t.Fatalf("no %q of %q in the CRD", k, keys)
		}
		o = m[k]
	}
	return o
}

// TestCRDNames holds the CRD to the names that people type.
func TestCRDNames(t *testing.T) {
	t.Parallel()
	o := &unstructured.Unstructured{Object: crd(t)}
	if got, want := o.GetName(), v1.Plural+"."+v1.GroupName; got != want {
		t.Errorf("the CRD is %s, want %s", got, want)
	}
	want := map[string]any{"kind": v1.KindName, "listKind": v1.KindName + "List", "plural": v1.Plural, "shortNames": []any{"gr"}, "singular": "gcuresource"}
	if diff := cmp.Diff(want, at(t, o.Object, "spec", "names")); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if got := at(t, o.Object, "spec", "scope"); got != "Cluster" {
		t.Errorf("scope %v", got)
	}
	versions := at(t, o.Object, "spec", "versions").([]any)
	if len(versions) != 1 || at(t, versions[0], "name") != v1.Version {
		t.Errorf("%d versions, want %s alone", len(versions), v1.Version)
	}
}

// TestCRDKeepsUnknownKeysOnlyWhereMeant finds a place where a misspelt key would be stored, and a component that the
// schema does not have.
func TestCRDKeepsUnknownKeysOnlyWhereMeant(t *testing.T) {
	t.Parallel()
	schema := at(t, at(t, crd(t), "spec", "versions").([]any)[0], "schema", "openAPIV3Schema").(map[string]any)
	var kept []string
	var walk func(path string, o any)
	walk = func(path string, o any) {
		switch o := o.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(o)) {
				if k == "x-kubernetes-preserve-unknown-fields" {
					kept = append(kept, path)
				}
				walk(path+"/"+k, o[k])
			}
		case []any:
			for _, e := range o {
				walk(path, e)
			}
		}
	}
	walk("", schema)
	want := []string{"/properties/spec/properties/nightingale", "/properties/spec/properties/volcano"}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("where unknown keys are kept (-want +got):\n%s", diff)
	}
	for _, k := range v1.Kinds() {
		at(t, schema, "properties", "spec", "properties", string(k), "properties", "notDeploy")
	}
}

// TestCRDIsSmallEnough: kubectl apply stores the object it is given in an annotation, and all annotations of an object
// have 256 KiB.
func TestCRDIsSmallEnough(t *testing.T) {
	t.Parallel()
	text, err := manifests.GcuResourceCRD()
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(asJSON) > 160<<10 { // 89 KiB when it was made
		t.Errorf("the CRD has %d bytes: want room below 256 KiB", len(asJSON))
	}
}
