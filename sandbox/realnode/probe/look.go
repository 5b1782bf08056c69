package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/topscloud/topscloud/sandbox/realnode/report"
)

func look(dev, try string) (*report.Report, error) {
	r := &report.Report{Env: map[string]string{}, Nodes: []report.Node{}}
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
		r.Nodes = append(r.Nodes, report.Node{Path: path, Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev), Open: open(path)})
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
		n := report.Node{Path: path, Major: major, Minor: minor}
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
