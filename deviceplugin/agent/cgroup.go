package agent

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// cgroups tells from the kernel's control groups whether processes of a pod run. Kubelet makes one group for
// each pod, named after its UID: pod<uid> with driver cgroupfs, kubepods-<qos>-pod<uid with _>.slice with
// systemd.
type cgroups struct{ root string }

// hierarchies are where groups are, with one hierarchy and with several.
var hierarchies = []string{"", "unified", "systemd", "pids", "memory", "devices"}

// alive says whether a process of the pod is left. A host without control groups has none.
func (c cgroups) alive(uid types.UID) bool {
	names := map[string]bool{"pod" + string(uid): true}
	flat := strings.ReplaceAll(string(uid), "-", "_")
	for _, qos := range []string{"kubepods-", "kubepods-burstable-", "kubepods-besteffort-"} {
		names[qos+"pod"+flat+".slice"] = true
	}
	for _, h := range hierarchies {
		if occupied(c.find(filepath.Join(c.root, "sys/fs/cgroup", h), names, 4)) {
			return true
		}
	}
	return false
}

// find returns the folder with one of some names not deeper than so many levels. Kubelet's own root group may
// stand above kubepods; pods' groups have none of another pod in them.
func (c cgroups) find(dir string, names map[string]bool, levels int) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		switch name := e.Name(); {
		case names[name]:
			return filepath.Join(dir, name)
		case levels > 1 && !strings.HasPrefix(name, "pod") && !strings.Contains(name, "-pod"):
			if found := c.find(filepath.Join(dir, name), names, levels-1); found != "" {
				return found
			}
		}
	}
	return ""
}

var errOccupied = errors.New("occupied")

// occupied says whether a group or one below it has a process.
func occupied(dir string) bool {
	if dir == "" {
		return false
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "cgroup.procs" {
			return nil // it is going away
		}
		if text, err := os.ReadFile(path); err == nil && len(bytes.TrimSpace(text)) > 0 {
			return errOccupied
		}
		return nil
	})
	return errors.Is(err, errOccupied)
}
