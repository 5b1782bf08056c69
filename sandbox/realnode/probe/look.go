package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// report is what a container finds. Package realnode decodes it.
type report struct {
	// Env are the variables that start with ENFLAME_.
	Env map[string]string `json:"env"`
	// Nodes are the device nodes in /dev whose names start with gcu, sorted.
	Nodes []node `json:"nodes"`
	// Tried are nodes that the container made for itself.
	Tried []node `json:"tried,omitempty"`
}

type node struct {
	Path  string `json:"path"`
	Major uint32 `json:"major"`
	Minor uint32 `json:"minor"`
	// Open is what opening it gives: "" for success, else the error's name. Without a driver that is ENXIO where the
	// rules allow it and EPERM where they do not.
	Open string `json:"open"`
}

func look(dev, try string) (*report, error) {
	r := &report{Env: map[string]string{}, Nodes: []node{}}
	for _, e := range os.Environ() {
		if name, value, _ := strings.Cut(e, "="); strings.HasPrefix(name, "ENFLAME_") {
			r.Env[name] = value
		}
	}
	paths, err := filepath.Glob(filepath.Join(dev, "gcu*"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return nil, fmt.Errorf("stat %s: %w", path, err)
		}
		r.Nodes = append(r.Nodes, node{Path: path, Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev), Open: open(path)})
	}
	if try == "" {
		return r, nil
	}
	var major, first, last uint32
	if _, err := fmt.Sscanf(try, "%d:%d-%d", &major, &first, &last); err != nil {
		return nil, fmt.Errorf("--try %s: %w", try, err)
	}
	for minor := first; minor <= last; minor++ {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("probe-%d-%d-%d", os.Getpid(), major, minor))
		n := node{Path: path, Major: major, Minor: minor}
		if err := os.MkdirAll(os.TempDir(), 0o755); err != nil {
			return nil, err
		}
		if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(major, minor))); err != nil {
			n.Open = "mknod: " + name(err)
		} else {
			n.Open = open(path)
			_ = os.Remove(path)
		}
		r.Tried = append(r.Tried, n)
	}
	return r, nil
}

func open(path string) string {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return name(err)
	}
	_ = unix.Close(fd)
	return ""
}

func name(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}
