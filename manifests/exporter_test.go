package manifests_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/manifests"
)

var exporterVariants = []string{manifests.ExporterPlain, manifests.ExporterNonPrivileged, manifests.ExporterARM}

func exporter(t *testing.T, variant string) ([]byte, *appsv1.DaemonSet) {
	t.Helper()
	text := read(t, func() ([]byte, error) { return manifests.Exporter(variant) })
	return text, daemonSet(t, text)
}

// The guides name these files.
func TestExporterFilesHaveTheGuidesNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gcu-exporter.yaml", "gcu-exporter-non-privileged.yaml", "gcu-exporter-for-arm.yaml"} {
		if _, err := os.Stat("yaml/" + name); err != nil {
			t.Error(err)
		}
	}
}

// What all variants share: the Service finds their pods, Prometheus the port, and nobody gets a token.
func TestExporterVariants(t *testing.T) {
	t.Parallel()
	for _, variant := range exporterVariants {
		t.Run("gcu-exporter"+variant, func(t *testing.T) {
			t.Parallel()
			text, ds := exporter(t, variant)
			docs := documents(t, text)
			if len(docs) != 3 {
				t.Errorf("%d documents: want ServiceAccount, Service, DaemonSet", len(docs))
			}
			account := strict[v1.ServiceAccount](t, docs["ServiceAccount gcu-exporter/kube-system"])
			service := strict[v1.Service](t, docs["Service gcu-exporter-service/kube-system"])
			spec := ds.Spec.Template.Spec
			if *account.AutomountServiceAccountToken || *spec.AutomountServiceAccountToken || spec.ServiceAccountName != account.Name {
				t.Error("it gets a token, or another account: it asks nothing of the API")
			}
			for key, value := range service.Spec.Selector {
				if ds.Spec.Template.Labels[key] != value {
					t.Errorf("the Service selects %s=%s, which its pods do not have", key, value)
				}
			}
			for key, value := range ds.Spec.Selector.MatchLabels {
				if ds.Spec.Template.Labels[key] != value {
					t.Errorf("the DaemonSet selects %s=%s, which its pods do not have", key, value)
				}
			}
			if spec.NodeSelector[contract.Default().PresentLabel] != "true" || len(spec.Containers) != 1 || spec.HostNetwork {
				t.Errorf("%+v", spec)
			}
			c := spec.Containers[0]
			port := c.Ports[0]
			if port.ContainerPort != 9400 || port.HostPort != 0 || service.Spec.Ports[0].Port != 9400 || service.Spec.Ports[0].TargetPort.StrVal != port.Name {
				t.Errorf("ports %+v, of the Service %+v: want 9400", c.Ports, service.Spec.Ports)
			}
			want := map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9400", "prometheus.io/path": "/metrics"}
			if diff := cmp.Diff(want, ds.Spec.Template.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" {
				t.Error("its probes ask for other pages than it has")
			}
			for _, m := range c.VolumeMounts {
				if !m.ReadOnly {
					t.Errorf("%s can be written", m.MountPath)
				}
			}
		})
	}
}

// Two DaemonSets in one cluster must not take each other's pods, and replacing one by the other must be possible:
// a selector cannot be changed.
func TestExporterSelectors(t *testing.T) {
	t.Parallel()
	_, plain := exporter(t, manifests.ExporterPlain)
	_, less := exporter(t, manifests.ExporterNonPrivileged)
	_, arm := exporter(t, manifests.ExporterARM)
	if plain.Name != less.Name || !cmp.Equal(plain.Spec.Selector, less.Spec.Selector) {
		t.Errorf("%s cannot be applied over %s", less.Name, plain.Name)
	}
	if arm.Name == plain.Name || cmp.Equal(plain.Spec.Selector, arm.Spec.Selector) {
		t.Error("the variant for arm64 takes the others' pods")
	}
	const arch = v1.LabelArchStable
	if a, b := plain.Spec.Template.Spec.NodeSelector[arch], arm.Spec.Template.Spec.NodeSelector[arch]; a != "amd64" || b != "arm64" {
		t.Errorf("nodes of %q and %q: want amd64 and arm64", a, b)
	}
}

// The variant for arm64 is the plain one but for its name and its nodes.
func TestExporterForARMDiffersOnlyWhereItMust(t *testing.T) {
	t.Parallel()
	_, plain := exporter(t, manifests.ExporterPlain)
	_, arm := exporter(t, manifests.ExporterARM)
	const instance = "app.kubernetes.io/instance"
	for _, d := range []*appsv1.DaemonSet{plain, arm} {
		d.Name = ""
		delete(d.Spec.Selector.MatchLabels, instance)
		delete(d.Spec.Template.Labels, instance)
		delete(d.Spec.Template.Spec.NodeSelector, v1.LabelArchStable)
	}
	if diff := cmp.Diff(plain, arm); diff != "" {
		t.Errorf("-gcu-exporter.yaml +gcu-exporter-for-arm.yaml:\n%s", diff)
	}
}

// The one sees the host and its processes, the other what it is given.
func TestExporterPrivileges(t *testing.T) {
	t.Parallel()
	_, plain := exporter(t, manifests.ExporterPlain)
	spec := plain.Spec.Template.Spec
	if !spec.HostPID || !*spec.Containers[0].SecurityContext.Privileged || spec.Volumes[0].HostPath.Path != "/" {
		t.Errorf("the privileged one: %+v", spec)
	}
	_, less := exporter(t, manifests.ExporterNonPrivileged)
	spec = less.Spec.Template.Spec
	security := spec.Containers[0].SecurityContext
	if spec.HostPID || spec.HostIPC || security.Privileged != nil || *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem ||
		fmt.Sprint(security.Capabilities.Drop) != "[ALL]" || security.Capabilities.Add != nil || spec.SecurityContext.SeccompProfile.Type != v1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the non-privileged one: %+v, %+v", spec, security)
	}
	var paths []string
	for _, v := range spec.Volumes {
		paths = append(paths, v.HostPath.Path)
	}
	slices.Sort(paths)
	if diff := cmp.Diff([]string{"/etc/topscloud", "/run/enflame-gcu", "/sys", "/var/lib/kubelet/pod-resources"}, paths); diff != "" {
		t.Errorf("folders of the host (-want +got):\n%s", diff)
	}
}

// prometheus-operator finds the pods of every variant, by a port that they have, and keeps the labels of holders.
func TestExporterMonitors(t *testing.T) {
	t.Parallel()
	monitor := documents(t, read(t, manifests.ExporterMonitors))["PodMonitor gcu-exporter/kube-system"]
	spec := monitor["spec"].(map[string]any)
	selector := spec["selector"].(map[string]any)["matchLabels"].(map[string]any)
	endpoint := spec["podMetricsEndpoints"].([]any)[0].(map[string]any)
	for _, variant := range exporterVariants {
		_, ds := exporter(t, variant)
		for key, value := range selector {
			if ds.Spec.Template.Labels[key] != value {
				t.Errorf("gcu-exporter%s: its pods do not have %s=%v", variant, key, value)
			}
		}
		if port := ds.Spec.Template.Spec.Containers[0].Ports[0].Name; endpoint["port"] != port {
			t.Errorf("gcu-exporter%s: port %s: the monitor asks %v", variant, port, endpoint["port"])
		}
	}
	if endpoint["honorLabels"] != true || endpoint["path"] != "/metrics" {
		t.Errorf("%v", endpoint)
	}
}
