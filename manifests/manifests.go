// Package manifests carries the YAML that ships, so that the sandbox and the tests run with the very
// files a cluster administrator applies.
package manifests

import (
	"embed"
	"io/fs"
	"slices"
)

//go:embed yaml/*.yaml examples/*.yaml
var files embed.FS

// SchedulerRBAC returns the rights of gcu-scheduler.
func SchedulerRBAC() ([]byte, error) { return files.ReadFile("yaml/gcu-scheduler-rbac.yaml") }

// RecordPolicy returns the admission policies on who may write records and device lists.
func RecordPolicy() ([]byte, error) { return files.ReadFile("yaml/gcu-record-policy.yaml") }

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
