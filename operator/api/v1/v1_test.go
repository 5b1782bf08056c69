package v1_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	v1 "github.com/topscloud/topscloud/operator/api/v1"
)

var update = flag.Bool("update", false, "write the golden files")

var release = v1.Release{Repository: "registry.test/topscloud", Version: "v9"}

func resource(t *testing.T, text []byte) *v1.GcuResource {
	t.Helper()
	r := &v1.GcuResource{}
	if err := yaml.UnmarshalStrict(text, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// spec reads a spec as an administrator writes it.
func spec(t *testing.T, text string) *v1.GcuResourceSpec {
	t.Helper()
	s := &v1.GcuResourceSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func samples(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("samples %q, error %v: want 4 or more", files, err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		if out[strings.TrimSuffix(filepath.Base(f), ".json")], err = os.ReadFile(f); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestGolden shows what becomes of whole resources.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, text := range samples(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := resource(t, text)
			if errs := r.Spec.Validate(); len(errs) > 0 {
				t.Errorf("Validate() = %v", errs)
			}
			before := r.DeepCopy()
			full := r.Spec.Normalised(release)
			if diff := cmp.Diff(before, r); diff != "" {
				t.Errorf("Normalised changed its receiver (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(full, full.Normalised(v1.Release{Repository: "other", Version: "other"})); diff != "" {
				t.Errorf("a second Normalised changed something (-want +got):\n%s", diff)
			}
			var b bytes.Buffer
			fmt.Fprintf(&b, "# deployed %v\n# nothing ready: %s; all ready: %s\n# foreign images: %v; not managed: %v\n",
				full.Deployed(), full.ReadyResource(), full.ReadyResource(v1.Kinds()...), full.ForeignImages(), full.Unmanaged())
			for _, k := range full.Deployed() {
				fmt.Fprintf(&b, "# %s: %s\n", k, strings.Join(full.Images(k), ", "))
			}
			out, err := yaml.Marshal(full)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(out)
			golden(t, filepath.Join("testdata", name+".golden.yaml"), b.Bytes())
		})
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestNothingIsLost sends resources through the types: a controller that reads and writes a whole object keeps what
// it does not know the use of, empty lists and false included.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	for name, text := range samples(t) {
		var want, got any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		r := resource(t, text)
		out, err := json.Marshal(r.DeepCopyObject())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		delete(got.(map[string]any)["metadata"].(map[string]any), "creationTimestamp")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestGuidesStatus reads the status that the upgrade guide prints.
func TestGuidesStatus(t *testing.T) {
	t.Parallel()
	const text = `{"clusterGCUNodes":["sse-lab-inspur-048"],"conditions":[{"action":"deploy","lastUpdateTime":"2022-10-20T03:36:59Z",
		"message":"success","progress":100,"reason":"success","status":"success"}],"observedGeneration":1,"phase":"Running","readyResource":"2/5",
		"resourceStatuses":[{"name":"driver","namespace":"kube-system","status":"Running"},{"name":"toolkit","namespace":"kube-system","status":"Running",
		"ownResources":[{"group":"apps","kind":"DaemonSet","name":"enflame-gcu-docker-plugin","version":"v1"},{"kind":"ServiceAccount","name":"a","version":"v1"}]}]}`
	status := v1.GcuResourceStatus{}
	if err := yaml.UnmarshalStrict([]byte(text), &status); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(status.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	var want, got any
	if err := errorOf(json.Unmarshal([]byte(text), &want), json.Unmarshal(out, &got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func errorOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestReadyResource has the counts of the guides.
func TestReadyResource(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec, want string
		ready      []v1.Kind
	}{
		"the upgrade guide, all five":                    {"{driver: {}, toolkit: {}, devicePlugin: {}, exporter: {}, gfd: {}}", "5/5", v1.Kinds()},
		"the upgrade guide, two of them":                 {"{driver: {}, toolkit: {}}", "2/5", v1.Kinds()},
		"the operator guide: nfd, the driver not":        {"{nfd: {}, driver: {notDeploy: true}, toolkit: {}, devicePlugin: {}, exporter: {}, gfd: {}}", "5/5", v1.Kinds()},
		"an extra kind that is named counts":             {"{driver: {}, toolkit: {}, plugin: {}, exporter: {}, gfd: {}, npd: {}}", "5/6", []v1.Kind{v1.KindDriver, v1.KindToolkit, v1.KindDevicePlugin, v1.KindExporter, v1.KindGFD}},
		"one that is not deployed is not ready":          {"{driver: {notDeploy: true}, toolkit: {}}", "0/4", []v1.Kind{v1.KindDriver}},
		"nothing at all":                                 {"{}", "0/5", v1.Kinds()},
		"everything named, nothing wanted":               {"{driver: {notDeploy: true}, toolkit: {notDeploy: true}, devicePlugin: {notDeploy: true}, exporter: {notDeploy: true}, gfd: {notDeploy: true}}", "0/0", nil},
		"a kind that is told twice is counted only once": {"{driver: {}}", "1/5", []v1.Kind{v1.KindDriver, v1.KindDriver}},
	}
	for name, tt := range tests {
		if got := spec(t, tt.spec).ReadyResource(tt.ready...); got != tt.want {
			t.Errorf("%s: ReadyResource(%v) = %s, want %s", name, tt.ready, got, tt.want)
		}
	}
}

// TestEveryKindIsAKey holds the list of kinds to the spec: each is a key, has a name and an image by default, and
// alone is what is deployed.
func TestEveryKindIsAKey(t *testing.T) {
	t.Parallel()
	for _, k := range v1.Kinds() {
		s := spec(t, fmt.Sprintf("{%s: {}}", k))
		if got := s.Deployed(); !slices.Equal(got, []v1.Kind{k}) {
			t.Errorf("%s: Deployed() = %v", k, got)
		}
		full := s.Normalised(release)
		if w := full.Workload(k); w.Name == "" || w.Namespace != v1.DefaultNamespace {
			t.Errorf("%s: workload %q in namespace %q", k, w.Name, w.Namespace)
		}
		if images := full.Images(k); len(images) == 0 && k != v1.KindDriver {
			t.Errorf("%s: no image", k)
		}
	}
}

func TestScheme(t *testing.T) {
	t.Parallel()
	s := runtime.NewScheme()
	if err := v1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, o := range []runtime.Object{&v1.GcuResource{}, &v1.GcuResourceList{}} {
		kinds, _, err := s.ObjectKinds(o)
		if err != nil || len(kinds) != 1 || kinds[0].GroupVersion() != v1.GroupVersion {
			t.Errorf("%T is %v, error %v", o, kinds, err)
		}
	}
}
