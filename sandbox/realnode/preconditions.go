package realnode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Lacking says what a machine lacks for a node.
type Lacking struct {
	Feature string
	// Remedy is what to do about it; empty where nothing can be done.
	Remedy string
	// Optional says that a machine without it is no mistake: it is not for such tests. Anything else
	// should be there where root and runc are.
	Optional bool
}

// Error names the feature and the remedy.
func (l *Lacking) Error() string {
	if l.Remedy == "" {
		return "a real node needs " + l.Feature
	}
	return fmt.Sprintf("a real node needs %s: %s", l.Feature, l.Remedy)
}

// Require skips a test where a node is not to be expected, and fails it where one should run and cannot.
func Require(t testing.TB) {
	t.Helper()
	err := Check()
	var lacking *Lacking
	switch {
	case err == nil:
	case errors.As(err, &lacking) && lacking.Optional:
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}

// Check returns nil when a node can run here, else a *Lacking.
func Check() error {
	if runtime.GOOS != "linux" {
		return &Lacking{Feature: "Linux", Optional: true}
	}
	if os.Geteuid() != 0 {
		return &Lacking{Feature: "root", Remedy: "run the tests as root", Optional: true}
	}
	for name, bit := range map[string]int{
		"CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN, "CAP_NET_ADMIN": unix.CAP_NET_ADMIN, "CAP_MKNOD": unix.CAP_MKNOD,
	} {
		if !capable(bit) {
			return &Lacking{Feature: name, Remedy: "run the tests on the host or in a privileged container", Optional: true}
		}
	}
	if _, err := findRunc(); err != nil {
		return &Lacking{Feature: "runc", Remedy: "apt-get install runc", Optional: true}
	}
	if _, err := findCNI(); err != nil {
		return &Lacking{Feature: "the CNI plugins bridge and host-local", Remedy: "apt-get install containernetworking-plugins"}
	}
	if _, err := cgroupMounts(); err != nil {
		return &Lacking{Feature: "cgroups: " + err.Error()}
	}
	return nil
}

func capable(bit int) bool {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return err == nil && mask&(1<<bit) != 0
		}
	}
	return false
}

// findRunc looks where administrators' programs are, too: their folders are not always in PATH.
func findRunc() (string, error) {
	if path, err := exec.LookPath("runc"); err == nil {
		return filepath.Abs(path)
	}
	for _, path := range []string{"/usr/sbin/runc", "/usr/local/sbin/runc", "/usr/local/bin/runc"} {
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", exec.ErrNotFound
}

// findCNI returns the folder of the plugins.
func findCNI() (string, error) {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"} {
		if !slices.ContainsFunc([]string{"bridge", "host-local", "loopback"}, func(name string) bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err != nil
		}) {
			return dir, nil
		}
	}
	return "", exec.ErrNotFound
}
