package cli_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/sandbox/process"
)

type tool struct {
	t    *testing.T
	path string
}

func build(t *testing.T) tool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gcu-sandbox")
	cmd := exec.Command("go", "build", "-o", path, "github.com/topscloud/topscloud/sandbox/cmd/gcu-sandbox")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return tool{t, path}
}

// run runs a command to its end. Output goes through files, so that a supervisor that is left behind
// holds no pipe of the test.
func (c tool) run(args ...string) (string, error) {
	c.t.Helper()
	out, err := os.CreateTemp(c.t.TempDir(), "out")
	if err != nil {
		c.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(c.path, args...)
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	b, readErr := os.ReadFile(out.Name())
	if readErr != nil {
		c.t.Fatal(readErr)
	}
	return string(b), err
}

func (c tool) mustRun(args ...string) string {
	c.t.Helper()
	out, err := c.run(args...)
	if err != nil {
		c.t.Fatalf("gcu-sandbox %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// up starts a detached sandbox and makes sure that it ends with the test.
func (c tool) up(dir string) {
	c.t.Helper()
	out := c.mustRun("up", "--detach", "--no-gcu-scheduler", "--machine", "s60x8", "--data-dir", dir)
	c.t.Cleanup(func() { _, _ = sandbox.Down(context.Background(), dir) })
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if want := "export KUBECONFIG=" + filepath.Join(dir, "kubeconfig"); lines[len(lines)-1] != want {
		c.t.Errorf("last line %q: want %q", lines[len(lines)-1], want)
	}
}

// records returns the processes of a data folder.
func records(t *testing.T, dir string) map[string]process.Record {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "run", "*.pid"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]process.Record{}
	for _, f := range files {
		r, err := process.ReadRecord(f)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".pid")] = r
	}
	return out
}

func nobodyAlive(t *testing.T, when string, rs map[string]process.Record) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		for _, r := range rs {
			if r.Alive() {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		for name, r := range rs {
			if r.Alive() {
				t.Errorf("%s: %s, pid %d, is alive", when, name, r.PID)
			}
		}
	}
}

func nodes(t *testing.T, dir string) int {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

// TestDetachedSandboxes is the life of two sandboxes side by side: one is killed and resumed, the
// other must not notice.
func TestDetachedSandboxes(t *testing.T) {
	c := build(t)
	first, second := t.TempDir(), t.TempDir()
	c.up(first)
	c.up(second)
	before, beside := records(t, first), records(t, second)
	if len(before) != 5 {
		t.Errorf("%d processes: want supervisor, etcd, API server, controller manager, scheduler: %v", len(before), before)
	}
	if out, err := c.run("up", "--no-gcu-scheduler", "--data-dir", first); err == nil || !strings.Contains(out, "already running") {
		t.Errorf("up on a running sandbox: %v\n%s", err, out)
	}

	if err := syscall.Kill(before[sandbox.Supervisor].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	nobodyAlive(t, "after SIGKILL of the supervisor", before)
	if out := c.mustRun("status", "--data-dir", first); !strings.Contains(out, "stopped") {
		t.Errorf("status after a crash:\n%s", out)
	}

	c.up(first)
	if n := nodes(t, first); n != 1 {
		t.Errorf("resumed with %d nodes: want 1", n)
	}
	for _, line := range strings.Split(c.mustRun("status", "--data-dir", first), "\n") {
		if len(line) > 80 {
			t.Errorf("status line of %d columns: %s", len(line), line)
		}
	}
	if out := c.mustRun("logs", "etcd", "--data-dir", first); out == "" {
		t.Error("the log of etcd is empty")
	}
	again := records(t, first)
	c.mustRun("down", "--data-dir", first)
	nobodyAlive(t, "after down", again)
	if out := c.mustRun("down", "--data-dir", first); !strings.Contains(out, "nothing was running") {
		t.Errorf("second down: %s", out)
	}

	for name, r := range beside {
		if !r.Alive() {
			t.Errorf("the sandbox beside lost its %s", name)
		}
	}
	c.mustRun("down", "--data-dir", second)
	nobodyAlive(t, "after down of the second", beside)
}

// TestInterrupt ends a sandbox in the foreground the way Ctrl-C does.
func TestInterrupt(t *testing.T) {
	c := build(t)
	dir := t.TempDir()
	cmd := exec.Command(c.path, "up", "--no-gcu-scheduler", "--data-dir", dir, "--machine", "t10x8")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	var seen strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(seen.String(), "ready; Ctrl-C stops it") {
		n, err := pipe.Read(buf)
		if err != nil {
			t.Fatalf("%v\n%s", err, &seen)
		}
		seen.Write(buf[:n])
	}
	running := records(t, dir)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
	nobodyAlive(t, "after an interrupt", running)
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	c := build(t)
	dir := t.TempDir()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"up", "--machine", "s60x9", "--data-dir", dir}, "want one of t10x8, s60x8"},
		{[]string{"up", "--machine", "s60x8:0", "--data-dir", dir}, "want 1 to 5000"},
		{[]string{"up", "--scheduler-binary", dir + "/none", "--data-dir", dir}, "not an executable file"},
		{[]string{"status", "--data-dir", dir}, "no sandbox in this data folder"},
		{[]string{"down", "--data-dir", dir + "/none"}, "no such data folder"},
		{[]string{"logs", "--data-dir", dir}, "no logs"},
	} {
		out, err := c.run(tc.args...)
		if err == nil || !strings.Contains(out, tc.want) {
			t.Errorf("%v: got %v, %q; want %q", tc.args, err, out, tc.want)
		}
	}
}
