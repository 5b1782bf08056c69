package realnode

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mount is a line of /proc/self/mountinfo.
type mount struct{ point, kind, options string }

func mounts() ([]mount, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []mount
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		point := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(left[4])
		out = append(out, mount{point: point, kind: right[0], options: right[2]})
	}
	return out, lines.Err()
}

// cgroupMounts returns the roots of all cgroup hierarchies: several with version 1, one with version 2.
func cgroupMounts() ([]mount, error) {
	all, err := mounts()
	if err != nil {
		return nil, err
	}
	var out []mount
	for _, m := range all {
		if m.kind == "cgroup" || m.kind == "cgroup2" {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no hierarchy is mounted")
	}
	return out, nil
}

// makeCgroup makes a cgroup in every hierarchy. Kubelet wants its root to be there.
func makeCgroup(name string) error {
	roots, err := cgroupMounts()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if root.kind == "cgroup2" && len(roots) == 1 {
			if err := delegate(root.point); err != nil {
				return err
			}
		}
		dir := filepath.Join(root.point, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if root.kind == "cgroup2" && len(roots) == 1 {
			if err := delegate(dir); err != nil {
				return err
			}
		}
		// A cpuset of version 1 starts empty, and takes no process until it has both.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			text, err := os.ReadFile(filepath.Join(root.point, file))
			if errors.Is(err, fs.ErrNotExist) || root.kind == "cgroup2" {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), text, 0o644)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// delegate lets the children of a cgroup of version 2 have all its controllers.
func delegate(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, controller := range strings.Fields(string(text)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// cgroupDirs returns a cgroup's folders in all hierarchies with those below them, parents first.
func cgroupDirs(name string) ([]string, error) {
	roots, err := cgroupMounts()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, root := range roots {
		err := filepath.WalkDir(filepath.Join(root.point, name), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // went while we looked
			}
			if err == nil && d.IsDir() {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// cgroupProcesses returns the processes in a cgroup and below it.
func cgroupProcesses(name string) ([]int, error) {
	dirs, err := cgroupDirs(name)
	if err != nil {
		return nil, err
	}
	seen := map[int]bool{}
	var out []int
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue // the cgroup went
		}
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 0 && !seen[pid] {
				seen[pid] = true
				out = append(out, pid)
			}
		}
	}
	return out, nil
}
