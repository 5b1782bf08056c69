package manifests_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/manifests"
)

// documents returns the documents of a file as values, by "Kind name/namespace".
func documents(t *testing.T, text []byte) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		var value map[string]any
		if err := yaml.UnmarshalStrict([]byte(doc), &value); err != nil {
			t.Fatalf("%v:\n%s", err, doc)
		}
		meta, _ := value["metadata"].(map[string]any)
		key := fmt.Sprintf("%v %v/%v", value["kind"], meta["name"], meta["namespace"])
		if _, twice := out[key]; twice {
			t.Errorf("%s is there twice", key)
		}
		out[key] = value
	}
	return out
}

func read(t *testing.T, file func() ([]byte, error)) []byte {
	t.Helper()
	text, err := file()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func plainNFD() ([]byte, error) { return manifests.NFD(false) }

// strict decodes a document into its type, which has to know every field.
func strict[T any](t *testing.T, value map[string]any) *T {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out T
	if err := yaml.UnmarshalStrict(text, &out); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return &out
}

func daemonSet(t *testing.T, text []byte) *appsv1.DaemonSet {
	t.Helper()
	for key, value := range documents(t, text) {
		if strings.HasPrefix(key, "DaemonSet ") {
			return strict[appsv1.DaemonSet](t, value)
		}
	}
	t.Fatal("no DaemonSet")
	return nil
}

// The variant for TKE is nfd.yaml with the domain added in three places.
func TestTKEDiffersOnlyWhereItMust(t *testing.T) {
	t.Parallel()
	body := func(text []byte) []string {
		_, after, _ := strings.Cut(string(text), "\napiVersion")
		return strings.Split(after, "\n")
	}
	tke, err := manifests.NFD(true)
	if err != nil {
		t.Fatal(err)
	}
	plain, variant := body(read(t, plainNFD)), body(tke)
	var only []string
	for _, line := range variant {
		if i := slices.Index(plain, line); i >= 0 {
			plain = slices.Delete(plain, i, i+1)
			continue
		}
		only = append(only, strings.TrimSpace(line))
	}
	for i := range plain {
		plain[i] = strings.TrimSpace(plain[i])
	}
	if diff := cmp.Diff([]string{"extraLabelNs: [enflame.com]", `extra-domains: ""`}, plain); diff != "" {
		t.Errorf("lines of nfd.yaml only (-want +got):\n%s", diff)
	}
	want := []string{
		contract.TKEDomain + `/gcu.present: "true"`,
		"extraLabelNs: [enflame.com, " + contract.TKEDomain + "]",
		`extra-domains: "` + contract.TKEDomain + `"`,
	}
	if diff := cmp.Diff(want, only); diff != "" {
		t.Errorf("lines of tke-cloud-nfd.yaml only (-want +got):\n%s", diff)
	}
}

// NFD is a released version, knows the vendor and the class, and sets the contract's labels.
func TestNFD(t *testing.T) {
	t.Parallel()
	text := read(t, plainNFD)
	ds := daemonSet(t, text)
	pinned := regexp.MustCompile(`^registry\.k8s\.io/nfd/node-feature-discovery:v\d+\.\d+\.\d+$`)
	ports := map[string]bool{}
	for _, c := range ds.Spec.Template.Spec.Containers {
		if !pinned.MatchString(c.Image) {
			t.Errorf("image %s: want a released version", c.Image)
		}
		for _, arg := range c.Args {
			if name, port, ok := strings.Cut(arg, "="); ok && (name == "-metrics" || name == "-grpc-health") {
				if ports[port] {
					t.Errorf("port %s is taken twice in one pod", port)
				}
				ports[port] = true
				if name == "-grpc-health" && (fmt.Sprint(c.LivenessProbe.GRPC.Port) != port || fmt.Sprint(c.ReadinessProbe.GRPC.Port) != port) {
					t.Errorf("container %s: its probes are not at port %s", c.Name, port)
				}
			}
		}
	}
	if len(ds.Spec.Template.Spec.Containers) != 2 || len(ports) != 4 {
		t.Errorf("%d containers, ports %v", len(ds.Spec.Template.Spec.Containers), ports)
	}
	rule, err := json.Marshal(documents(t, text)["NodeFeatureRule enflame-gcu/<nil>"]["spec"])
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{contract.Default().PresentLabel, "feature.node.kubernetes.io/pci-1e36.present", `["1e36"]`, `["1200"]`} {
		if !strings.Contains(string(rule), word) {
			t.Errorf("the rule does not have %s: %s", word, rule)
		}
	}
	// What makes feature.node.kubernetes.io/pci-1200_1e36.present.
	if !strings.Contains(string(text), "deviceLabelFields: [class, vendor]") {
		t.Error("the worker's PCI labels do not have class and vendor")
	}
}

// Everything the all-in-one file has stands in the other files in the same words.
func TestAllInOneIsTheSumOfItsParts(t *testing.T) {
	t.Parallel()
	text := read(t, manifests.AllInOne)
	all := documents(t, text)
	parts := map[string]map[string]any{}
	for _, file := range []func() ([]byte, error){plainNFD, manifests.AgentRBAC, manifests.DiscoveryRBAC} {
		for key, value := range documents(t, read(t, file)) {
			parts[key] = value
		}
	}
	const account = "k8s-device-plugin-with-nfd-gfd"
	for key, value := range all {
		kind, _, _ := strings.Cut(key, " ")
		if kind == "ServiceAccount" || kind == "DaemonSet" {
			continue
		}
		part, ok := parts[key]
		if !ok {
			t.Errorf("%s is in no other file", key)
			continue
		}
		if subjects, bound := value["subjects"].([]any); bound {
			if name := subjects[0].(map[string]any)["name"]; len(subjects) != 1 || name != account {
				t.Errorf("%s: subjects %v: want %s", key, subjects, account)
			}
			delete(value, "subjects")
			delete(part, "subjects")
		}
		if diff := cmp.Diff(part, value); diff != "" {
			t.Errorf("%s (-in its file +here):\n%s", key, diff)
		}
	}
	for key := range parts {
		kind, _, _ := strings.Cut(key, " ")
		optional := strings.Contains(key, "gcu-feature-discovery-node") || strings.HasSuffix(key, " gcu-feature-discovery/kube-system") && kind != "ConfigMap"
		if _, there := all[key]; !there && kind != "ServiceAccount" && kind != "DaemonSet" && !optional {
			t.Errorf("%s is missing", key)
		}
	}
	ds := daemonSet(t, text)
	var names []string
	volumes := map[string]v1.Volume{}
	for _, v := range ds.Spec.Template.Spec.Volumes {
		volumes[v.Name] = v
	}
	containers := map[string]v1.Container{}
	for _, c := range ds.Spec.Template.Spec.Containers {
		names = append(names, c.Name)
		containers[c.Name] = c
		for _, m := range c.VolumeMounts {
			if _, ok := volumes[m.Name]; !ok {
				t.Errorf("container %s: no volume %s", c.Name, m.Name)
			}
		}
	}
	if want := []string{"nfd-master", "nfd-worker", "gcu-device-plugin", "gcu-feature-discovery"}; !slices.Equal(names, want) {
		t.Errorf("containers %v: want %v", names, want)
	}
	if ds.Spec.Template.Spec.ServiceAccountName != account || ds.Spec.Template.Spec.NodeSelector != nil {
		t.Errorf("account %s, selector %v", ds.Spec.Template.Spec.ServiceAccountName, ds.Spec.Template.Spec.NodeSelector)
	}
	for _, file := range []func() ([]byte, error){plainNFD, manifests.Discovery} {
		part := daemonSet(t, read(t, file))
		for _, c := range part.Spec.Template.Spec.Containers {
			if !reflect.DeepEqual(c, containers[c.Name]) {
				t.Errorf("container %s (-in its file +here):\n%s", c.Name, cmp.Diff(c, containers[c.Name]))
			}
		}
		for _, v := range part.Spec.Template.Spec.Volumes {
			if diff := cmp.Diff(v, volumes[v.Name]); diff != "" {
				t.Errorf("volume %s (-in its file +here):\n%s", v.Name, diff)
			}
		}
	}
}

// Discovery runs where a rule of NFD has found a card, without privilege.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	ds := daemonSet(t, read(t, manifests.Discovery))
	spec := ds.Spec.Template.Spec
	if spec.NodeSelector[contract.Default().PresentLabel] != "true" || len(spec.Containers) != 1 || spec.HostNetwork || spec.HostPID {
		t.Errorf("%+v", spec)
	}
	security := spec.Containers[0].SecurityContext
	if security.Privileged != nil || *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || fmt.Sprint(security.Capabilities.Drop) != "[ALL]" {
		t.Errorf("%+v", security)
	}
	for _, m := range spec.Containers[0].VolumeMounts {
		if m.Name != "features-d" && !m.ReadOnly {
			t.Errorf("%s can be written", m.MountPath)
		}
	}
}

// Rights of discovery and NFD are named, one by one.
func TestDiscoveryRightsNameEverything(t *testing.T) {
	t.Parallel()
	roles := 0
	for _, file := range []func() ([]byte, error){plainNFD, manifests.DiscoveryRBAC} {
		for key, value := range documents(t, read(t, file)) {
			if kind, _, _ := strings.Cut(key, " "); kind != "ClusterRole" && kind != "Role" {
				continue
			}
			roles++
			role := strict[rbacv1.ClusterRole](t, value)
			for _, r := range role.Rules {
				for _, word := range slices.Concat(r.APIGroups, r.Resources, r.Verbs, r.ResourceNames) {
					if strings.Contains(word, "*") || slices.Contains([]string{"escalate", "bind", "impersonate", "deletecollection", "secrets"}, word) {
						t.Errorf("%s: %q", key, word)
					}
				}
			}
		}
	}
	if roles != 6 {
		t.Errorf("%d roles: want 6", roles)
	}
}
