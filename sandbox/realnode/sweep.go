package realnode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/topscloud/topscloud/sandbox/process"
)

// Components are the node's child processes in starting order.
const (
	containerdName = "containerd"
	kubeletName    = "kubelet"
)

// sweepTime bounds the time until killed processes are gone.
const sweepTime = 20 * time.Second

// Clean takes away what a node that was killed has left on the machine. Where nothing is left it does nothing.
func Clean(ctx context.Context, log io.Writer) error {
	lock, err := lockMachine(ctx, log)
	if err != nil {
		return err
	}
	defer lock.Close()
	return cleanLocked(ctx, log)
}

func cleanLocked(ctx context.Context, log io.Writer) error {
	s, err := readState()
	if err != nil || s == nil {
		return err
	}
	fmt.Fprintln(log, "cleaning up after a real node that was killed, in", s.Dir)
	if err := s.sweep(ctx); err != nil {
		return fmt.Errorf("clean up after the real node of %s: %w", s.Dir, err)
	}
	return nil
}

// sweep makes the machine what it was. It works from the state alone, goes on after errors, and may be called
// again: what is gone already is no error. The state's file goes last, and only when everything else went.
func (s *state) sweep(ctx context.Context) error {
	l := layout{s.Dir}
	var errs []error
	do := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	for _, name := range []string{kubeletName, containerdName} {
		_, err := process.Reap(ctx, l.pid(name), stopGrace)
		do("end "+name, err)
	}
	do("end shims", endAll(ctx, func() ([]int, error) { return shimsOf(l.engineSocket()) }))
	do("end containers", endAll(ctx, func() ([]int, error) { return cgroupProcesses(s.Cgroup) }))
	do("shims' sockets", s.removeShimSockets())
	do("mounts", unmountBelow(s.Dir))
	do("bridge", removeBridge(s.Bridge))
	do("CNI results", removeMatching(cniResults, func(name string) bool { return strings.HasPrefix(name, s.Network+"-") }))
	do("log links", s.removeLogLinks())
	do("cgroups", s.removeCgroup(ctx))
	do("device plugins' folder", s.restorePlugins())
	for path, value := range s.Sysctls {
		do("restore sysctl", restoreSysctl(path, value))
	}
	for _, path := range slices.Backward(s.Made) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EBUSY) {
			do("folder", err)
		}
	}
	if len(errs) == 0 {
		do("folder", os.RemoveAll(s.Dir))
	}
	if len(errs) == 0 {
		do("state", os.Remove(statePath))
	}
	return errors.Join(errs...)
}

// shimsOf returns the shims that were started for an engine's socket. They say it on their command line.
func shimsOf(socket string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue // ended meanwhile
		}
		args := strings.Split(string(text), "\x00")
		at := slices.Index(args, "-address")
		if at >= 0 && at+1 < len(args) && args[at+1] == socket && strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") {
			out = append(out, pid)
		}
	}
	return out, nil
}

// endAll kills what find finds until it finds nothing.
func endAll(ctx context.Context, find func() ([]int, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sweepTime, fmt.Errorf("they are still there after %s", sweepTime))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		pids, err := find()
		if err != nil {
			return err
		}
		waiting := 0
		for _, pid := range pids {
			// The descriptor pins the process that has the number now; a second look tells whether it is still meant.
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue
			}
			again, err := find()
			if err == nil && slices.Contains(again, pid) {
				waiting++
				_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // one that just ended is what is wanted
			}
			_ = unix.Close(fd)
		}
		if waiting == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("processes %v: %w", pids, context.Cause(ctx))
		}
	}
}

// removeShimSockets removes the sockets that shims of this node had in the folder all engines share. Each
// container's bundle names its own.
func (s *state) removeShimSockets() error {
	var errs []error
	for _, name := range []string{"bootstrap.json", "address"} {
		files, err := filepath.Glob(filepath.Join(layout{s.Dir}.path("state"), "io.containerd.runtime.v2.task", "*", "*", name))
		errs = append(errs, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			// Plain, or within the JSON of newer engines.
			_, rest, ok := strings.Cut(string(text), "unix://")
			if !ok {
				continue
			}
			path := rest
			if i := strings.IndexAny(rest, "\"\n "); i >= 0 {
				path = rest[:i]
			}
			if filepath.Dir(path) == shimSockets {
				if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
					errs = append(errs, err)
				}
			}
		}
	}
	return errors.Join(errs...)
}

// unmountBelow takes away every mount below a folder, the youngest first.
func unmountBelow(dir string) error {
	all, err := mounts()
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range slices.Backward(all) {
		if strings.HasPrefix(m.point, dir+"/") {
			if err := unix.Unmount(m.point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
				errs = append(errs, fmt.Errorf("unmount %s: %w", m.point, err))
			}
		}
	}
	return errors.Join(errs...)
}

func removeMatching(dir string, match func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var errs []error
	for _, e := range entries {
		if match(e.Name()) {
			errs = append(errs, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// removeLogLinks removes the links that kubelet makes to its containers' logs.
func (s *state) removeLogLinks() error {
	return removeMatching(containerLogs, func(name string) bool {
		target, err := os.Readlink(filepath.Join(containerLogs, name))
		return err == nil && strings.HasPrefix(target, s.Dir+"/")
	})
}

// removeCgroup removes the node's cgroups. One whose last process has just ended is busy for a moment.
func (s *state) removeCgroup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		dirs, err := cgroupDirs(s.Cgroup)
		if err != nil {
			return err
		}
		var last error
		for _, dir := range slices.Backward(dirs) {
			if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
				last = err
			}
		}
		if last == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return last
		}
	}
}

// restorePlugins empties the folder of device plugins and puts back the one that was there before.
func (s *state) restorePlugins() error {
	if s.Kept == "" {
		return os.RemoveAll(pluginDir)
	}
	if _, err := os.Stat(s.Kept); errors.Is(err, fs.ErrNotExist) {
		return nil // it was never moved, or is back
	}
	if err := os.RemoveAll(pluginDir); err != nil {
		return err
	}
	return os.Rename(s.Kept, pluginDir)
}

func restoreSysctl(path, value string) error {
	text, err := os.ReadFile(path)
	if err != nil || strings.TrimSpace(string(text)) == value {
		return err
	}
	return os.WriteFile(path, []byte(value+"\n"), 0o644)
}
