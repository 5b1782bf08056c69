package realnode

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCleanTakesAwayWhatAKilledNodeLeft makes what a node has outside its folder, as if it had been killed, and
// expects the next one to find the machine as it was, and everything that is not the node's own untouched.
func TestCleanTakesAwayWhatAKilledNodeLeft(t *testing.T) {
	Require(t)
	lock, err := lockMachine(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := errors.Join(cleanLocked(t.Context(), io.Discard), refuseForeign()); err != nil {
		t.Fatal(err)
	}
	was := map[string]bool{}
	for _, path := range []string{kubeletDir, pluginDir, containerLogs, shimSockets, cniResults} {
		_, err := os.Stat(path)
		was[path] = err == nil
	}
	key := hex.EncodeToString([]byte{byte(os.Getpid() >> 8), byte(os.Getpid()), 0xc1, 0xea})
	dir := filepath.Join(os.TempDir(), "rn-"+key)
	s, err := newState(dir, key)
	if err != nil {
		t.Fatal(err)
	}
	l := layout{dir}
	if err := errors.Join(
		s.write(), os.MkdirAll(l.path("run"), 0o755), os.MkdirAll(l.path("mount"), 0o755), makeCgroup(s.Cgroup),
		makeBridge(s.Bridge, "192.0.2.201", "255.255.255.255"), unix.Mount("tmpfs", l.path("mount"), "tmpfs", 0, ""),
	); err != nil {
		t.Fatal(err)
	}
	if s.Kept != "" {
		if err := os.Rename(pluginDir, s.Kept); err != nil {
			t.Fatal(err)
		}
	}
	bundle := l.path("state", "io.containerd.runtime.v2.task", "k8s.io", "x")
	socket := filepath.Join(shimSockets, key)
	for path, text := range map[string]string{
		filepath.Join(pluginDir, "kubelet_internal_checkpoint"): "{}",
		filepath.Join(cniResults, s.Network+"-x-eth0"):          "{}",
		filepath.Join(bundle, "bootstrap.json"):                 `{"address":"unix://` + socket + `"}`,
		socket:                                                  "",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.MkdirAll(containerLogs, 0o755), os.Symlink(l.podLogs()+"/x", filepath.Join(containerLogs, key+".log"))); err != nil {
		t.Fatal(err)
	}
	// A container, a shim, and a shim of somebody else.
	contained := start(t, "/bin/sleep", "1000")
	roots, err := cgroupMounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range roots {
		if err := os.WriteFile(filepath.Join(root.point, s.Cgroup, "cgroup.procs"), []byte(strconv.Itoa(contained.Process.Pid)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	shim := start(t, "containerd-shim-runc-v2", "-c", "sleep 1000; :", "-address", l.engineSocket())
	stranger := start(t, "containerd-shim-runc-v2", "-c", "sleep 1000; :", "-address", "/run/containerd/containerd.sock")

	if err := cleanLocked(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []*exec.Cmd{contained, shim} {
		if err := gone.Wait(); err == nil {
			t.Errorf("%v ended by itself, want it killed", gone.Args)
		}
	}
	if err := stranger.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("another engine's shim is gone: %v", err)
	}
	if _, err := net.InterfaceByName(s.Bridge); err == nil {
		t.Error("the bridge is still there")
	}
	for path, there := range was {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("%s: %v, and before it was there: %v", path, err, there)
		}
	}
	dirs, err := cgroupDirs(s.Cgroup)
	if err != nil || len(dirs) > 0 {
		t.Errorf("cgroups %v, %v", dirs, err)
	}
	for _, path := range []string{dir, statePath, socket} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
	if err := cleanLocked(t.Context(), io.Discard); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

// start runs a shell, or sleep, under a name of the test's choice.
func start(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", args...)
	if filepath.IsAbs(name) {
		cmd = exec.Command(name, args...)
	}
	cmd.Args[0] = name
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL); _ = cmd.Wait() })
	return cmd
}

func TestImageIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	var a, b bytes.Buffer
	files := []imageFile{{ProbePath, []byte("program")}}
	if err := errors.Join(writeImage(&a, ProbeImage, files, "pause"), writeImage(&b, ProbeImage, files, "pause")); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two archives of one program differ")
	}
}
