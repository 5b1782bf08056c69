package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Version is what cgroups a host has mounted.
type Version string

// Versions of cgroups; Hybrid has both.
const (
	V1      Version = "v1"
	V2      Version = "v2"
	Hybrid  Version = "v1 and v2"
	Unknown Version = ""
)

// Drivers of cgroups.
const (
	Systemd  = "systemd"
	Cgroupfs = "cgroupfs"
)

// cgroupRoot is where cgroups are mounted for the host. Others, such as Calico's in /run/calico/cgroup, are
// a program's own and say nothing about the host.
const cgroupRoot = "/sys/fs/cgroup"

// ParseMounts returns the version of cgroups in the text of /proc/mounts.
func ParseMounts(text string) Version {
	v1, v2 := false, false
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[1] != cgroupRoot && !strings.HasPrefix(fields[1], cgroupRoot+"/") {
			continue
		}
		v1 = v1 || fields[2] == "cgroup"
		v2 = v2 || fields[2] == "cgroup2"
	}
	switch {
	case v1 && v2:
		return Hybrid
	case v1:
		return V1
	case v2:
		return V2
	}
	return Unknown
}

// Cgroups returns the version of cgroups of a host. It is that of its first process, which a container has
// a view of its own of.
func Cgroups(root string) (Version, error) {
	for _, path := range []string{"proc/1/mounts", "proc/mounts"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err == nil {
			return ParseMounts(string(text)), nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
			return Unknown, err
		}
	}
	return Unknown, errors.New("no list of mounts in /proc")
}

// Kubelet is what is known of a host's kubelet.
type Kubelet struct {
	// Present says whether it runs or has a configuration.
	Present bool
	// Driver is its cgroup driver, empty if nothing names one; From says what names it.
	Driver, From string
}

const kubeletConfig = "/var/lib/kubelet/config.yaml"

// FindKubelet looks for kubelet's cgroup driver: its command line counts before its configuration file.
func FindKubelet(root string) (Kubelet, error) {
	args, running, err := kubeletArgs(root)
	if err != nil {
		return Kubelet{}, err
	}
	if driver, ok := flag(args, "cgroup-driver"); ok {
		return Kubelet{Present: true, Driver: driver, From: "its flag --cgroup-driver"}, nil
	}
	path, named := flag(args, "config")
	if !named {
		path = kubeletConfig
	}
	text, err := os.ReadFile(filepath.Join(root, path))
	if errors.Is(err, fs.ErrNotExist) && !named {
		return Kubelet{Present: running}, nil
	}
	if err != nil {
		return Kubelet{Present: true}, err
	}
	var config struct {
		CgroupDriver string `json:"cgroupDriver"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return Kubelet{Present: true}, fmt.Errorf("%s: %w", path, err)
	}
	k := Kubelet{Present: true, Driver: config.CgroupDriver}
	if k.Driver != "" {
		k.From = path
	}
	return k, nil
}

// kubeletArgs returns the command line of a running kubelet.
func kubeletArgs(root string) (args []string, running bool, err error) {
	entries, err := os.ReadDir(filepath.Join(root, "proc"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	pids := make([]int, 0, len(entries))
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	for _, pid := range pids {
		dir := filepath.Join(root, "proc", strconv.Itoa(pid))
		name, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil || strings.TrimSpace(string(name)) != "kubelet" {
			continue // a process may be gone by now
		}
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil {
			continue
		}
		for arg := range bytes.SplitSeq(bytes.TrimRight(line, "\x00"), []byte{0}) {
			args = append(args, string(arg))
		}
		return args, true, nil
	}
	return nil, false, nil
}

// flag returns the value of a flag in a command line; the last one counts.
func flag(args []string, name string) (value string, found bool) {
	for i, arg := range args {
		word, ok := strings.CutPrefix(arg, "-")
		if !ok {
			continue
		}
		word = strings.TrimPrefix(word, "-")
		if got, ok := strings.CutPrefix(word, name+"="); ok {
			value, found = got, true
		} else if word == name && i+1 < len(args) {
			value, found = args[i+1], true
		}
	}
	return value, found
}
