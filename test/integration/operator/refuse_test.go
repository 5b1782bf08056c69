package operator_test

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1 "github.com/topscloud/topscloud/operator/api/v1"
)

// TestRefusals gives specs to the API server and to Validate: what the schema refuses Validate refuses too, and both
// name the field, its value and what is allowed. Nothing is stored.
func TestRefusals(t *testing.T) {
	const labels = "want lower-case letters, digits and '-'"
	tests := map[string]struct {
		spec string
		want []string // in the API server's answer; none: it is accepted
	}{
		"an empty component":        {"{exporter: {}}", nil},
		"empty strings":             {"{exporter: {name: '', image: '', repository: '', version: '', namespace: '', imagePullPolicy: ''}}", nil},
		"ports and digests":         {"{gfd: {repository: 'r.test:5000/A/b_c', version: 'sha256:" + strings.Repeat("0a", 32) + "', image: a__b/c-d.e}}", nil},
		"sharing beside devices":    {"{devicePlugin: {}, gcusharePlugin: {memoryUnit: '0.01'}}", nil},
		"the scheduler rolls":       {"{gcushareScheduler: {updateStrategy: {type: RollingUpdate}}}", nil},
		"a DaemonSet by hand":       {"{gfd: {updateStrategy: {type: OnDelete}}}", nil},
		"both names":                {"{plugin: {}, devicePlugin: {}}", []string{"spec.plugin: Forbidden: plugin is another name of devicePlugin: give one of the two"}},
		"a memory unit":             {"{gcusharePlugin: {memoryUnit: '2'}}", []string{`spec.gcusharePlugin.memoryUnit: Unsupported value: "2": supported values: "1", "0.1", "0.01", "0.001"`}},
		"a driver's mode":           {"{driver: {mode: host}}", []string{`spec.driver.mode: Unsupported value: "host": supported values: "image", "preinstalled"`}},
		"a pull policy":             {"{toolkit: {imagePullPolicy: Sometimes}}", []string{`spec.toolkit.imagePullPolicy: Unsupported value: "Sometimes": supported values: "", "Always", "IfNotPresent", "Never"`}},
		"a name":                    {"{gfd: {name: GFD}}", []string{`spec.gfd.name: Invalid value: "GFD": ` + labels}},
		"a long name":               {"{gfd: {name: " + strings.Repeat("a", 64) + "}}", []string{"spec.gfd.name: Too long: may not be more than 63"}},
		"a namespace":               {"{npd: {namespace: -a}}", []string{`spec.npd.namespace: Invalid value: "-a": ` + labels}},
		"an image with its tag":     {"{nfd: {master: {image: 'nfd:v1'}}}", []string{`spec.nfd.master.image: Invalid value: "nfd:v1": want the name of an image alone`}},
		"a repository":              {"{npd: {repository: 'r.test/'}}", []string{`spec.npd.repository: Invalid value: "r.test/": want a registry and a path`}},
		"a version":                 {"{driver: {version: 'a b'}}", []string{`spec.driver.version: Invalid value: "a b": want a tag`}},
		"a variable without a name": {"{driver: {env: [{name: '', value: a}]}}", []string{`spec.driver.env[0].name: Invalid value: ""`}},
		"an update":                 {"{gfd: {updateStrategy: {type: Recreate}}}", []string{`spec.gfd.updateStrategy.type: Unsupported value: "Recreate": supported values: "RollingUpdate", "OnDelete"`}},
		"an update by hand of a Deployment": {"{gcushareScheduler: {updateStrategy: {type: OnDelete}}}", []string{
			`spec.gcushareScheduler.updateStrategy.type: Invalid value`, "allowed is RollingUpdate"}},
		"rolling by hand": {"{gfd: {updateStrategy: {type: OnDelete, rollingUpdate: {}}}}", []string{"spec.gfd.updateStrategy.rollingUpdate: Forbidden: rollingUpdate is for type RollingUpdate"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, spec := create(t, tt.spec)
			errs := spec.Validate()
			if refused := len(tt.want) > 0; refused != (got != "") || refused != (len(errs) > 0) {
				t.Fatalf("the API server says %q and Validate %v: want %q of both", got, errs, tt.want)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("the API server says %s\nwant %s", got, want)
				}
			}
		})
	}
}

// TestMisspeltKeysAreRefused: what would be dropped in silence is an error for a client that asks, as kubectl does.
func TestMisspeltKeysAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"{drivers: {}}":                     `unknown field "spec.drivers"`,
		"{driver: {notdeploy: true}}":       `unknown field "spec.driver.notdeploy"`,
		"{nfd: {master: {tag: v1}}}":        `unknown field "spec.nfd.master.tag"`,
		"{driver: {notDeploy: 'true'}}":     `spec.driver.notDeploy: Invalid value: "string"`,
		"{gcusharePlugin: {memoryUnit: 1}}": `spec.gcusharePlugin.memoryUnit: Invalid value: "integer"`,
		"{volcano: true}":                   `spec.volcano: Invalid value: "boolean"`,
	} {
		if got := dryRun(t, text); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %s", text, got, want)
		}
	}
}

// create sends a spec to the API server, which does not store it, and returns what that says against it.
func create(t *testing.T, text string) (string, *v1.GcuResourceSpec) {
	t.Helper()
	spec := &v1.GcuResourceSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return dryRun(t, text), spec
}

func dryRun(t *testing.T, text string) string {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var spec map[string]any
	if err := json.Unmarshal(asJSON, &spec); err != nil {
		t.Fatal(err)
	}
	_, err = resources.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": v1.KindName, "metadata": map[string]any{"name": "refused"}, "spec": spec,
	}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return err.Error()
	}
	return ""
}
