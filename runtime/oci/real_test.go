package oci_test

import (
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/host/hosttest"
)

// TestRealRuntime starts a container with a real runc and looks at it from inside: nodes, device rules,
// mounts. There is no driver behind the nodes, so a node that may be opened gives ENXIO, and one that the
// rules forbid EPERM.
func TestRealRuntime(t *testing.T) {
	out := newContainer(t).run(t, os.Args[0])
	want := []string{
		"/dev/gcuctl: no such device or address",
		"/dev/gcu0: no such file or directory",
		"/dev/gcu1: no such device or address",
		"gcu0 made by the container: operation not permitted",
		"/usr/lib/enflame/libefml.so: library, written to: read-only file system",
		"/usr/bin/efsmi: tool, written to: read-only file system",
		"LD_LIBRARY_PATH=/usr/lib/enflame",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(out), "\n")); diff != "" {
		t.Errorf("inside the container (-want +got):\n%s", diff)
	}
}

// BenchmarkRun starts containers with plain runc and with the wrapper before it, in turn, so that both meet
// the same machine. The container of the first pair asks for a card, that of the second for nothing, as most
// do. The wrapper is the program in TOPSCLOUD_WRAPPER; without it the test binary, which takes longer to start.
//
// The third of each round is the least that a program in Go can do there: it starts and becomes runc. What the
// wrapper takes beyond it is the wrapper's own work; the rest is what the machine takes to start any such program.
//
//	CGO_ENABLED=0 go build -o /tmp/wrapper ./runtime/cmd/enflame-container-runtime
//	TOPSCLOUD_WRAPPER=/tmp/wrapper CGO_ENABLED=0 go test -run '^$' -bench Run$ -benchtime 100x ./runtime/oci
func BenchmarkRun(b *testing.B) {
	wrapper := os.Getenv("TOPSCLOUD_WRAPPER")
	if wrapper == "" {
		wrapper = os.Args[0]
	}
	bare := buildBare(b, realRuntime(b))
	for _, asks := range []string{"a card", "nothing"} {
		b.Run(asks, func(b *testing.B) {
			c := newContainer(b)
			if asks == "nothing" {
				c.spec = strings.Replace(c.spec, "ENFLAME_VISIBLE_DEVICES=1", "OTHER=1", 1)
			}
			took := map[string][]time.Duration{}
			timed := func(program string) {
				start := time.Now()
				c.run(b, program)
				took[program] = append(took[program], time.Since(start))
			}
			programs := []string{c.runc, wrapper, bare}
			for _, p := range programs { // fills caches
				timed(p)
			}
			clear(took)
			for n := 0; b.Loop(); n++ {
				for i := range programs {
					timed(programs[(n+i)%len(programs)])
				}
			}
			var more, own []time.Duration
			for i, plain := range took[c.runc] {
				more = append(more, took[wrapper][i]-plain)
				own = append(own, took[wrapper][i]-took[bare][i])
			}
			report := func(what string, list []time.Duration) {
				slices.Sort(list)
				at := func(part float64) float64 { return list[int(part*float64(len(list)-1))].Seconds() * 1000 }
				b.ReportMetric(at(0.5), what+"-ms")
				b.Logf("%s: median %.2f ms, eight of ten %.2f to %.2f ms, all %.2f to %.2f ms", what, at(0.5), at(0.1), at(0.9), at(0), at(1))
			}
			report("runc", took[c.runc])
			report("wrapper", took[wrapper])
			report("difference", more)
			report("own", own)
		})
	}
}

// container is a bundle for a real runc, on a host with real device nodes.
type container struct {
	*bench
	runc, state, spec string
}

func newContainer(t testing.TB) *container {
	t.Helper()
	c := &container{runc: realRuntime(t), bench: newBench(t), state: t.TempDir()}
	for path, numbers := range map[string][2]uint32{"/dev/gcuctl": {hosttest.ControlMajor, hosttest.ControlMinor},
		"/dev/gcu0": {240, 0}, "/dev/gcu1": {240, 1}, "/dev/gcu2": {240, 2}, "/dev/gcu3": {240, 3}} {
		if err := os.Remove(filepath.Join(c.root, path)); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mknod(filepath.Join(c.root, path), unix.S_IFCHR|0o666, int(unix.Mkdev(numbers[0], numbers[1]))); err != nil {
			t.Skip("needs CAP_MKNOD, the right to make device nodes:", err)
		}
	}
	hosttest.Write(t, c.root, contract.RuntimeConfigPath, "[enflame-container-runtime]\nruntimes = ['"+c.runc+"']\n")
	hosttest.Write(t, c.bundle, "rootfs/probe", read(t, "/proc/self/exe"))
	text, err := json.Marshal(runtimeSpec(t, c.runc))
	if err != nil {
		t.Fatal(err)
	}
	c.spec = string(text)
	return c
}

// run starts the container by runc or the wrapper, and returns what it prints.
func (c *container) run(t testing.TB, program string) string {
	t.Helper()
	hosttest.Write(t, c.bundle, "config.json", c.spec)
	id := fmt.Sprintf("enflame-test-%d", os.Getpid())
	cmd := exec.Command(program, "--root", c.state, "run", "--bundle", c.bundle, id)
	cmd.Env = append(os.Environ(), "TEST_IS_WRAPPER=real", "GCU_HOST_ROOT="+c.root)
	out, err := cmd.CombinedOutput()
	if err != nil {
		_ = exec.Command(c.runc, "--root", c.state, "delete", "--force", id).Run() // the error that counts comes now
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// realRuntime returns a runc, or says why the test cannot run.
func realRuntime(t testing.TB) string {
	t.Helper()
	binary, err := elf.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	if slices.ContainsFunc(binary.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Skip("needs a static test binary, to be run in an empty root file system: CGO_ENABLED=0")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to start containers")
	}
	for _, path := range []string{os.Getenv("TOPSCLOUD_RUNC"), "/usr/sbin/runc", "/usr/bin/runc", "/usr/local/sbin/runc"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skip("needs runc: install it, or name it in TOPSCLOUD_RUNC")
	return ""
}

// runtimeSpec returns runc's own example of a spec, for the probe, which may make device nodes.
func runtimeSpec(t testing.TB, runc string) map[string]any {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command(runc, "spec", "--bundle", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var spec map[string]any
	if err := json.Unmarshal([]byte(read(t, dir, "config.json")), &spec); err != nil {
		t.Fatal(err)
	}
	process := spec["process"].(map[string]any)
	process["args"], process["terminal"] = []string{"/probe"}, false
	process["env"] = []string{"TEST_IS_PROBE=1", "ENFLAME_VISIBLE_DEVICES=1"}
	process["capabilities"] = map[string]any{"bounding": []string{"CAP_MKNOD"}, "effective": []string{"CAP_MKNOD"}, "permitted": []string{"CAP_MKNOD"}}
	spec["root"].(map[string]any)["readonly"] = false
	return spec
}

// probe is what runs inside the container.
func probe() {
	reason := func(err error) string {
		var errno syscall.Errno
		if errors.As(err, &errno) {
			return errno.Error()
		}
		return fmt.Sprint(err)
	}
	for _, path := range []string{"/dev/gcuctl", "/dev/gcu0", "/dev/gcu1"} {
		_, err := os.Open(path)
		fmt.Printf("%s: %s\n", path, reason(err))
	}
	err := unix.Mknod("/dev/mine", unix.S_IFCHR|0o666, int(unix.Mkdev(240, 0)))
	if err == nil {
		_, err = os.Open("/dev/mine")
	}
	fmt.Printf("gcu0 made by the container: %s\n", reason(err))
	for _, path := range []string{"/usr/lib/enflame/libefml.so", "/usr/bin/efsmi"} {
		text, err := os.ReadFile(path)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s: %s, written to: %s\n", path, text, reason(os.WriteFile(path, nil, 0o644)))
	}
	fmt.Println("LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH"))
}
