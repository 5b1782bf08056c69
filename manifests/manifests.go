// Package manifests carries the YAML that ships, so that the sandbox and the tests run with the very
// files a cluster administrator applies.
package manifests

import (
	"embed"
	"io/fs"
	"slices"
	"strings"

	"github.com/topscloud/topscloud/internal/contract"
)

//go:embed yaml/*.yaml examples/*.yaml alerts/*.yaml dashboards/*.json
var files embed.FS

// SchedulerRBAC returns the rights of gcu-scheduler.
func SchedulerRBAC() ([]byte, error) { return files.ReadFile("yaml/gcu-scheduler-rbac.yaml") }

// AgentRBAC returns the rights of gcu-device-plugin, the node agent.
func AgentRBAC() ([]byte, error) { return files.ReadFile("yaml/gcu-device-plugin-rbac.yaml") }

// DiscoveryRBAC returns the rights of gcu-feature-discovery, and the policies that bound them.
func DiscoveryRBAC() ([]byte, error) { return files.ReadFile("yaml/gcu-feature-discovery-rbac.yaml") }

// Discovery returns the DaemonSet of gcu-feature-discovery.
func Discovery() ([]byte, error) { return files.ReadFile("yaml/gcu-feature-discovery-daemonset.yaml") }

// GcuResourceCRD returns the custom resource of the operator, GcuResource.
func GcuResourceCRD() ([]byte, error) { return files.ReadFile("yaml/gcu-operator-crd.yaml") }

// Exporter returns gcu-exporter: ServiceAccount, Service and DaemonSet. The variant is ExporterPlain,
// ExporterNonPrivileged or ExporterARM.
func Exporter(variant string) ([]byte, error) {
	return files.ReadFile("yaml/gcu-exporter" + variant + ".yaml")
}

// The variants of Exporter.
const (
	ExporterPlain         = ""
	ExporterNonPrivileged = "-non-privileged"
	ExporterARM           = "-for-arm"
)

// ExporterMonitors returns how prometheus-operator finds gcu-exporter.
func ExporterMonitors() ([]byte, error) { return files.ReadFile("yaml/gcu-exporter-monitors.yaml") }

// Rules returns the recording and alerting rules, as Prometheus reads them.
func Rules() ([]byte, error) { return files.ReadFile("alerts/gcu-rules.yaml") }

// Dashboards returns the Grafana dashboards by file name.
func Dashboards() (map[string][]byte, error) {
	entries, err := files.ReadDir("dashboards")
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, e := range entries {
		if out[e.Name()], err = files.ReadFile("dashboards/" + e.Name()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// NFD returns node-feature-discovery as configured for GCU nodes; with tke its variant for that cloud.
func NFD(tke bool) ([]byte, error) {
	if tke {
		return files.ReadFile("yaml/tke-cloud-nfd.yaml")
	}
	return files.ReadFile("yaml/nfd.yaml")
}

// AllInOne returns NFD, the node agent and gcu-feature-discovery as one DaemonSet.
func AllInOne() ([]byte, error) { return files.ReadFile("yaml/k8s-device-plugin-with-nfd-gfd.yaml") }

// RecordPolicy returns the admission policies on who may write records and device lists, for the given
// names.
func RecordPolicy(names *contract.Names) ([]byte, error) {
	text, err := files.ReadFile("yaml/gcu-record-policy.yaml")
	if err != nil {
		return nil, err
	}
	return rename(text, names), nil
}

// rename puts other names in the place of the default ones that a file has.
func rename(text []byte, names *contract.Names) []byte {
	was := contract.Default()
	var pairs []string
	// Longer names first, since some begin with others.
	for _, key := range []func(*contract.Names) string{
		func(n *contract.Names) string { return n.AssignedMinorKey }, func(n *contract.Names) string { return n.AssignedTimeKey },
		func(n *contract.Names) string { return n.AssignedKey }, func(n *contract.Names) string { return n.AllocationKey },
		func(n *contract.Names) string { return n.RequestSizeKey }, func(n *contract.Names) string { return n.DevicesKey },
		func(n *contract.Names) string { return n.SharedCapacityKey },
	} {
		pairs = append(pairs, key(was), key(names))
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(text)))
}

// Roles returns the ClusterRoles for people.
func Roles() ([]byte, error) { return files.ReadFile("yaml/gcu-roles.yaml") }

// SchedulerConfig returns the configuration of gcu-scheduler, if this release has one.
func SchedulerConfig() ([]byte, bool) {
	b, err := files.ReadFile("yaml/gcu-scheduler-config.yaml")
	return b, err == nil
}

// Example is one file below examples.
type Example struct {
	Name string
	YAML []byte
}

// Examples returns the example files, sorted by name.
func Examples() ([]Example, error) {
	names, err := fs.Glob(files, "examples/*.yaml")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	out := make([]Example, 0, len(names))
	for _, n := range names {
		b, err := files.ReadFile(n)
		if err != nil {
			return nil, err
		}
		out = append(out, Example{Name: n[len("examples/"):], YAML: b})
	}
	return out, nil
}
