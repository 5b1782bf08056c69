package processes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/eflib"
)

// kthreadd is process 2 as the first namespace has it.
const kthreadd = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 18 0 0 18446744073709551615 0 0 0 0\n"

// root writes files below a made-up /proc.
func root(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, "proc", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// line is /proc/<pid>/stat of a program that started so many seconds after boot.
func line(pid int, name string, started float64) string {
	return fmt.Sprintf("%d (%s) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 %d 1 1 18446744073709551615\n", pid, name, int(started*100))
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string
		seen  bool
	}{
		"the host's": {map[string]string{"2/stat": kthreadd}, true},
		// A container without hostPID: its own first processes, or only one.
		"a container's":                         {map[string]string{"1/stat": line(1, "gcu-exporter", 900)}, false},
		"a container's with a second":           {map[string]string{"2/stat": line(2, "sh", 900)}, false},
		"a program called kthreadd":             {map[string]string{"2/stat": line(2, "kthreadd", 900)}, false},
		"a kernel thread that is not the first": {map[string]string{"2/stat": strings.Replace(kthreadd, "S 0 ", "S 7 ", 1)}, false},
		"nonsense":                              {map[string]string{"2/stat": "2 kthreadd"}, false},
		"no /proc":                              {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := Open(root(t, tt.files))
			if err := table.Visible(); (err == nil) != tt.seen || err != nil && !errors.Is(err, ErrNotTheHosts) {
				t.Errorf("visible: %v, want %v", err, tt.seen)
			}
			if got, err := table.Look([]eflib.Process{{PID: 1, DeviceBytes: 1}}, time.Now()); !tt.seen && (err == nil || got != nil) {
				t.Errorf("told %v, %v of processes that are not the host's", got, err)
			}
		})
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	pod := "0::/kubepods/pod" + uid + "/" + container + "\n"
	table := Open(root(t, map[string]string{
		"2/stat":  kthreadd,
		"uptime":  "1000.00 5.00\n",
		"70/stat": line(70, "python3 (train) x", 100), "70/cgroup": pod,
		"71/stat": line(71, "monitor", 100), "71/cgroup": "0::/system.slice/monitor.service\n",
		"73/stat": line(73, "young", 995), "73/cgroup": pod,
	}))
	// The card was asked 10 s ago, when 995 s after boot were still to come.
	got, err := table.Look([]eflib.Process{
		{PID: 70, DeviceBytes: 7}, {PID: 71, DeviceBytes: 8}, {PID: 72, DeviceBytes: 9}, {PID: 73, DeviceBytes: 10}, {PID: 70, DeviceBytes: 100},
	}, time.Now().Add(-10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	want := []Process{
		{PID: 70, Name: "python3 (train) x", PodUID: uid, DeviceBytes: 107},
		{PID: 71, Name: "monitor", DeviceBytes: 8},
		{PID: 72, DeviceBytes: 9},  // it is gone
		{PID: 73, DeviceBytes: 10}, // the number was given to another one since
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
}

func TestLookSaysWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no uptime":  {map[string]string{"2/stat": kthreadd, "70/stat": line(70, "a", 1), "70/cgroup": ""}, "uptime"},
		"odd uptime": {map[string]string{"2/stat": kthreadd, "uptime": "soon"}, "want seconds"},
		"odd stat":   {map[string]string{"2/stat": kthreadd, "uptime": "10.0", "70/stat": "70 a"}, "process 70"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := Open(root(t, tt.files)).Look([]eflib.Process{{PID: 70}}, time.Now()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, %v, want an error with %q", got, err, tt.want)
			}
		})
	}
}

// This test's own process, where the machine shows its processes to it.
func TestLookAtThisMachine(t *testing.T) {
	t.Parallel()
	table := Open("")
	if _, err := os.Stat("/proc/2/stat"); errors.Is(err, fs.ErrNotExist) && table.Visible() == nil {
		t.Error("there is no process 2, and the processes are said to be the host's")
	}
	if err := table.Visible(); err != nil {
		t.Skip("needs a machine whose first PID namespace is this one: ", err)
	}
	got, err := table.Look([]eflib.Process{{PID: os.Getpid(), DeviceBytes: 1}}, time.Now())
	if err != nil || len(got) != 1 || got[0].Name == "" {
		t.Errorf("this process: %+v, %v", got, err)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add(kthreadd)
	f.Add(line(3, ") ( S", 1))
	f.Add("1 () ")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseStat(text)
		if err == nil && (s.started < 0 || !strings.Contains(text, "(")) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}
