// Package hosttest makes up hosts with cards for tests, without the right to make device nodes: a node is a
// file that holds its numbers.
package hosttest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/eflib/sysfs"
	"github.com/topscloud/topscloud/runtime/host"
)

// ControlMajor and ControlMinor are the numbers of /dev/gcuctl.
const (
	ControlMajor = 239
	ControlMinor = 255
)

// New makes up a host below a folder of its own: a machine by the name of its preset, with device nodes,
// efsmi and libefml.
func New(t testing.TB, preset string) *host.Host {
	t.Helper()
	machine, err := sim.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	h := &host.Host{Root: t.TempDir(), Files: host.DefaultFiles(), Stat: Stat}
	h.Cards = sysfs.New(os.DirFS(h.Root))
	if err := machine.WriteSysfs(h.Root); err != nil {
		t.Fatal(err)
	}
	devices, err := machine.Devices(context.Background())
	if _, all := eflib.DeviceErrors(err); !all {
		t.Fatal(err)
	}
	for _, d := range devices {
		Write(t, h.Root, d.Node, fmt.Sprintf("%d:%d", d.Major, d.DevMinor))
	}
	Write(t, h.Root, "/dev/gcuctl", fmt.Sprintf("%d:%d", ControlMajor, ControlMinor))
	Write(t, h.Root, "/usr/bin/efsmi", "tool")
	Write(t, h.Root, "/usr/lib/libefml.so.1.0.0", "library")
	Write(t, h.Root, "/usr/lib/libefml.so.conf", "no library")
	Link(t, h.Root, "/usr/lib/libefml.so", "libefml.so.1.0.0")
	Link(t, h.Root, "/usr/lib/libefml.so.1", "/usr/lib/libefml.so.1.0.0")
	return h
}

// Stat reads a node that is a file with its numbers.
func Stat(path string) (host.Node, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return host.Node{}, err
	}
	n := host.Node{Mode: fs.FileMode(0o666)}
	if _, err := fmt.Sscanf(strings.TrimSpace(string(text)), "%d:%d", &n.Major, &n.Minor); err != nil {
		return host.Node{}, fmt.Errorf("%s is no character device", path)
	}
	return n, nil
}

// Write writes a file below a root.
func Write(t testing.TB, root, path, text string) {
	t.Helper()
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Link makes a symbolic link below a root.
func Link(t testing.TB, root, path, target string) {
	t.Helper()
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}
