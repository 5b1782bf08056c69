package exporter_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/manifests"
	"github.com/topscloud/topscloud/test/integration/nodetest"
)

// document is one object of a file, with the text it is in.
type document struct {
	*unstructured.Unstructured
	text []byte
}

func documents(t *testing.T, text []byte, err error) []document {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var out []document
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		o := document{&unstructured.Unstructured{}, []byte(doc)}
		if err := yaml.Unmarshal(o.text, &o.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

func exporterFile(t *testing.T, variant string) []document {
	t.Helper()
	text, err := manifests.Exporter(variant)
	return documents(t, text, err)
}

// applier does what kubectl apply --server-side does, and refuses fields that the API server does not know.
type applier struct {
	client dynamic.Interface
	mapper meta.RESTMapper
}

func newApplier(t *testing.T) *applier {
	t.Helper()
	client, err := dynamic.NewForConfig(nodetest.Cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return &applier{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(nodetest.Admin.Discovery()))}
}

func (a *applier) resource(d document) (dynamic.ResourceInterface, error) {
	kind := d.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	return a.client.Resource(mapping.Resource).Namespace(d.GetNamespace()), nil
}

func (a *applier) apply(ctx context.Context, d document, dryRun ...string) error {
	r, err := a.resource(d)
	if err != nil {
		return err
	}
	_, err = r.Patch(ctx, d.GetName(), types.ApplyYAMLPatchType, d.text, metav1.PatchOptions{
		FieldManager: "kubectl", FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun,
	})
	return err
}

var variants = []string{manifests.ExporterPlain, manifests.ExporterNonPrivileged, manifests.ExporterARM}

// The API server takes all objects of all files, but for the kinds of prometheus-operator, which it has to have.
func TestManifestsDryRun(t *testing.T) {
	t.Parallel()
	a := newApplier(t)
	for _, variant := range variants {
		for _, d := range exporterFile(t, variant) {
			if err := a.apply(t.Context(), d, metav1.DryRunAll); err != nil {
				t.Errorf("gcu-exporter%s.yaml: %s %s: %v", variant, d.GetKind(), d.GetName(), err)
			}
		}
	}
	text, err := manifests.ExporterMonitors()
	var foreign []string
	for _, d := range documents(t, text, err) {
		switch err := a.apply(t.Context(), d, metav1.DryRunAll); {
		case meta.IsNoMatchError(err):
			foreign = append(foreign, d.GetAPIVersion()+" "+d.GetKind())
		case err != nil:
			t.Errorf("gcu-exporter-monitors.yaml: %s %s: %v", d.GetKind(), d.GetName(), err)
		}
	}
	if diff := cmp.Diff([]string{"monitoring.coreos.com/v1 PodMonitor"}, foreign); diff != "" {
		t.Errorf("kinds that prometheus-operator brings (-want +got):\n%s", diff)
	}
}

// Applying the file without privilege takes the place of the plain one, nothing of which stays; that for arm64 goes
// beside it.
func TestManifestsReplaceEachOther(t *testing.T) {
	t.Parallel()
	a := newApplier(t)
	t.Cleanup(func() {
		for _, variant := range variants {
			for _, d := range exporterFile(t, variant) {
				r, err := a.resource(d)
				if err == nil {
					err = r.Delete(context.Background(), d.GetName(), metav1.DeleteOptions{})
				}
				if err != nil && !apierrors.IsNotFound(err) {
					t.Error(err)
				}
			}
		}
	})
	sets := func() map[string]appsv1.DaemonSet {
		t.Helper()
		list, err := nodetest.Admin.AppsV1().DaemonSets("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=gcu-exporter"})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]appsv1.DaemonSet{}
		for _, ds := range list.Items {
			out[ds.Name] = ds
		}
		return out
	}
	for _, step := range []struct {
		variant string
		sets    int
		hostPID bool
		volumes int
	}{
		{manifests.ExporterPlain, 1, true, 1},
		{manifests.ExporterNonPrivileged, 1, false, 4},
		{manifests.ExporterARM, 2, false, 4},
		{manifests.ExporterPlain, 2, true, 1},
	} {
		for _, d := range exporterFile(t, step.variant) {
			if err := a.apply(t.Context(), d); err != nil {
				t.Fatalf("gcu-exporter%s.yaml: %s %s: %v", step.variant, d.GetKind(), d.GetName(), err)
			}
		}
		got := sets()
		spec := got["gcu-exporter"].Spec.Template.Spec
		if len(got) != step.sets || spec.HostPID != step.hostPID || len(spec.Volumes) != step.volumes {
			t.Errorf("gcu-exporter%s.yaml: %d DaemonSets, hostPID %t, %d volumes, want %+v", step.variant, len(got), spec.HostPID, len(spec.Volumes), step)
		}
	}
}

// violations are the rules that Pod Security says a pod breaks.
func violations(err error) []string {
	_, list, found := strings.Cut(err.Error(), `:latest": `)
	if !found {
		return []string{err.Error()}
	}
	var out []string
	for _, m := range violation.FindAllStringSubmatch(list, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return out
}

var violation = regexp.MustCompile(`(?:^|\), )([^(]+?) \(`)

// Which levels of Pod Security take the exporter's pods, and what the others refuse.
func TestPodSecurity(t *testing.T) {
	t.Parallel()
	whole := map[string][]string{
		"privileged": nil,
		"baseline":   {"host namespaces", "hostPath volumes", "privileged"},
		"restricted": {"allowPrivilegeEscalation != false", "host namespaces", "privileged", "restricted volume types", "runAsNonRoot != true", "seccompProfile", "unrestricted capabilities"},
	}
	wants := map[string]map[string][]string{
		manifests.ExporterPlain: whole,
		manifests.ExporterARM:   whole,
		manifests.ExporterNonPrivileged: {
			"privileged": nil,
			"baseline":   {"hostPath volumes"},
			"restricted": {"restricted volume types", "runAsNonRoot != true", "runAsUser=0"},
		},
	}
	suffix := rand.String(6)
	namespace := func(level string) string { return level + "-" + suffix }
	for level := range whole {
		name := namespace(level)
		object := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}}}
		if _, err := nodetest.Admin.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create := func(level string, spec v1.PodSpec) error {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "gcu-exporter"}, Spec: spec}
		_, err := nodetest.Admin.CoreV1().Pods(namespace(level)).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for _, variant := range variants {
		spec := podSpec(t, variant)
		for level, want := range wants[variant] {
			var got []string
			if err := create(level, spec); err != nil {
				got = violations(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("gcu-exporter%s.yaml at level %s (-want +got):\n%s", variant, level, diff)
			}
		}
	}
	// Everything else of restricted is kept: without the host's folders and with another user it is taken.
	spec := podSpec(t, manifests.ExporterNonPrivileged)
	user, yes := int64(65532), true
	spec.Volumes, spec.Containers[0].VolumeMounts = nil, nil
	spec.Containers[0].SecurityContext.RunAsUser, spec.Containers[0].SecurityContext.RunAsNonRoot = &user, &yes
	if err := create("restricted", spec); err != nil {
		t.Errorf("without folders of the host and not as root: %v", err)
	}
}

func podSpec(t *testing.T, variant string) v1.PodSpec {
	t.Helper()
	for _, d := range exporterFile(t, variant) {
		if d.GetKind() != "DaemonSet" {
			continue
		}
		var ds appsv1.DaemonSet
		if err := yaml.UnmarshalStrict(d.text, &ds); err != nil {
			t.Fatal(err)
		}
		return ds.Spec.Template.Spec
	}
	t.Fatal(fmt.Sprintf("gcu-exporter%s.yaml has no DaemonSet", variant))
	return v1.PodSpec{}
}
