package ctk_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topscloud/topscloud/runtime/ctk"
	"github.com/topscloud/topscloud/runtime/engine/containerd"
	"github.com/topscloud/topscloud/runtime/engine/docker"
	"github.com/topscloud/topscloud/runtime/host/hosttest"
)

// run runs the command and returns what it wrote.
func run(root string, args ...string) (stdout, stderr string, err error) {
	var out, problems bytes.Buffer
	cmd := ctk.New(func(key string) string { return map[string]string{"GCU_HOST_ROOT": root}[key] }, hosttest.Stat)
	cmd.SetOut(&out)
	cmd.SetErr(&problems)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(context.Background())
	return out.String(), problems.String(), err
}

// step is a call with what its output has to have; an error if fails is not empty.
type step struct {
	args         string
	prepare      func(t *testing.T)
	want, stderr string
	fails        string
}

func walk(t *testing.T, root string, steps []step) {
	t.Helper()
	for _, s := range steps {
		if s.prepare != nil {
			s.prepare(t)
		}
		out, problems, err := run(root, strings.Fields(s.args)...)
		if (err == nil) != (s.fails == "") || err != nil && !strings.Contains(err.Error(), s.fails) {
			t.Errorf("%s: error %v, want %q", s.args, err, s.fails)
		}
		if !strings.Contains(out, s.want) || !strings.Contains(problems, s.stderr) {
			t.Errorf("%s:\n%s%s\nwant %q and %q", s.args, out, problems, s.want, s.stderr)
		}
	}
}

func TestCDI(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	walk(t, h.Root, []step{
		{args: "cdi check", want: "is missing", fails: "cdi refresh"},
		{args: "cdi generate", want: "enflame.com-gcu.yaml written: 9 devices"},
		{args: "cdi generate", want: "nothing to do, 9 devices"},
		{args: "cdi check", want: "the spec is that of the host"},
		{args: "cdi list", want: "enflame.com/gcu=GCU-PCI-0000:"},
		{args: "cdi check --engine-root /", want: "device all is another one by now", fails: "cdi refresh"},
		{args: "cdi generate --engine-root /", want: "written"},
		{args: "cdi check --engine-root /", want: "the spec is that of the host"},
		{args: "cdi check --engine-root x", fails: "absolute"},
		{args: "cdi refresh", prepare: func(t *testing.T) { hosttest.Write(t, h.Root, "/dev/gcu1", "1:3") }, want: "written: 7 devices", stderr: "left out: device 0000:"},
		{args: "cdi generate --host-root /nowhere", fails: "not loaded"},
		{args: "cdi generate --host-root nowhere", fails: "absolute"},
		{args: "cdi generate --device-source libefml", fails: "auto, sysfs, sim"},
		{args: "cdi generate --device-source sim --machine none", fails: "--machine"},
		{args: "cdi generate --device-source sim --machine s60x8 --node-name a", want: "written", stderr: "left out"},
		{args: "cdi generate more", fails: "unknown command"},
	})
}

func TestConfigure(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	path := filepath.Join(root, containerd.ConfigPath)
	hosttest.Write(t, root, containerd.ConfigPath, "version = 2\n")
	hosttest.Write(t, root, "/var/lib/kubelet/config.yaml", "cgroupDriver: systemd\n")
	walk(t, root, []step{
		{args: "configure", fails: "containerd, docker, crio"},
		{args: "configure --engine podman", fails: "podman"},
		{args: "configure --engine containerd --cgroup-driver x", fails: "cgroup-driver"},
		{args: "configure --engine containerd --dry-run", want: "+            SystemdCgroup = true\n"},
		{args: "configure --engine containerd --cgroup-driver inherit --dry-run", want: "+            BinaryName = \"/usr/bin/enflame-container-runtime\"\n+\n"},
		{args: "configure --engine containerd", want: "systemctl restart containerd", prepare: func(t *testing.T) {
			if text, err := os.ReadFile(path); err != nil || string(text) != "version = 2\n" {
				t.Errorf("--dry-run has written: %q, %v", text, err)
			}
		}},
		{args: "configure --engine containerd", want: "nothing to do, no restart needed"},
		{args: "configure --engine containerd --unconfigure", want: "written"},
		{args: "configure --engine containerd --unconfigure", want: "nothing to do"},
		{args: "configure --engine docker --dry-run", want: `"default-runtime": "enflame"`},
		{args: "configure --engine docker --set-as-default=false", want: "restart docker"},
		{args: "configure --engine docker --unconfigure", want: "daemon.json removed"},
		{args: "configure --engine crio", want: "99-enflame.conf written"},
		{args: "configure --engine crio --unconfigure", want: "99-enflame.conf removed"},
	})
	if text, err := os.ReadFile(path); err != nil || string(text) != "version = 2\n" {
		t.Errorf("undone: %q, %v", text, err)
	}
	if left, err := filepath.Glob(filepath.Join(root, docker.ConfigPath+"*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	hosttest.Write(t, root, "/var/lib/kubelet/config.yaml", "{")
	walk(t, root, []step{{args: "configure --engine containerd", fails: "choose one with --cgroup-driver"}})
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	hosttest.Write(t, h.Root, "/proc/1/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
	walk(t, h.Root, []step{
		{args: "doctor", want: "ok     driver      1.8.7\n"},
		{args: "doctor --device-source sim --machine t20x4", want: "ok     driver      1.8.7\n"},
		{args: "doctor", prepare: func(t *testing.T) { hosttest.Write(t, h.Root, "/proc/1/mounts", "") }, want: "error  cgroups", fails: "see the lines with error"},
		{args: "--version", want: "enflame-ctk version"},
	})
}
