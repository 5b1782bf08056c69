package efsmi_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/efsmi"
	"github.com/topscloud/topscloud/eflib/efsmi/efsmitest"
	"github.com/topscloud/topscloud/eflib/sim"
)

var update = flag.Bool("update", false, "write the wanted parts of testdata anew")

func TestGolden(t *testing.T) {
	t.Parallel()
	for file, parse := range map[string]func(string) (efsmi.Report, error){
		"testdata/table.txtar": efsmi.ParseTable, "testdata/query.txtar": efsmi.ParseQuery,
	} {
		parts := archive(t, file)
		for i, p := range parts {
			name, isText := strings.CutSuffix(p.name, ".txt")
			if !isText {
				continue
			}
			got := print(parse(p.text))
			if *update {
				parts[i+1] = part{name + ".want", got}
			} else if diff := cmp.Diff(parts[i+1].text, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", file, p.name, diff)
			}
		}
		if *update {
			write(t, file, parts)
		}
	}
}

// print writes what has a value.
func print(r efsmi.Report, err error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "driver %s\n", r.Driver)
	for _, c := range r.Cards {
		fmt.Fprintf(&b, "%d %s %d MiB\n", c.Index, c.Address, c.TotalMiB)
		for name, reading := range c.Sample.All() {
			if reading.Err() == nil {
				fmt.Fprintf(&b, "  %s %v\n", name, reading)
			}
		}
	}
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(&b, "error %s\n", strings.TrimSpace(line))
		}
	}
	return b.String()
}

type part struct{ name, text string }

// archive reads a txtar file; the first part is the comment.
func archive(t *testing.T, file string) []part {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := []part{{}}
	for line := range strings.Lines(string(b)) {
		if name, found := strings.CutPrefix(line, "-- "); found && strings.HasSuffix(name, " --\n") {
			parts = append(parts, part{name: strings.TrimSuffix(name, " --\n")})
			continue
		}
		parts[len(parts)-1].text += line
	}
	return parts
}

func write(t *testing.T, file string, parts []part) {
	t.Helper()
	var b strings.Builder
	for _, p := range parts {
		if p.name != "" {
			fmt.Fprintf(&b, "-- %s --\n", p.name)
		}
		b.WriteString(p.text)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func fuzz(f *testing.F, file string, parse func(string) (efsmi.Report, error)) {
	b, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	for p := range strings.SplitSeq(string(b), "\n-- ") {
		f.Add(p)
	}
	f.Add("| 0 a | b | 00:00:00.0 |\n| 1 2W 3W | 1MiB Disable | 1% x |")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parse(text)
		if len(r.Cards) == 0 && err == nil {
			t.Error("nothing was read without an error")
		}
		seen := map[string]bool{}
		for _, c := range r.Cards {
			if at := c.Address.String(); seen[at] {
				t.Errorf("two cards at %s", at)
			} else {
				seen[at] = true
			}
			if v, known := c.Sample.Usage.Value(); known && !(v >= 0 && v <= 100) {
				t.Errorf("usage %v", v)
			}
			if m, known := c.Sample.Memory.Value(); known && (m.UsedBytes < 0 || m.UsedBytes > m.TotalBytes) {
				t.Errorf("memory %+v", m)
			}
			if id, known := c.Sample.Identity.Value(); known && strings.ContainsAny(id.UUID+id.SerialNumber, " \n,") {
				t.Errorf("identity %+v", id)
			}
		}
	})
}

func FuzzParseTable(f *testing.F) { fuzz(f, "testdata/table.txtar", efsmi.ParseTable) }
func FuzzParseQuery(f *testing.F) { fuzz(f, "testdata/query.txtar", efsmi.ParseQuery) }

// The suite is run in package source, joined with sysfs: without it nothing tells that the driver is not
// loaded. This is what the tool alone tells.
func TestDevices(t *testing.T) {
	m, err := sim.Preset("mixed")
	if err != nil {
		t.Fatal(err)
	}
	tool := &efsmitest.Tool{}
	tool.Show(m)
	both := efsmi.New(tool.Run)
	devices, err := both.Devices(t.Context())
	if err != nil || len(devices) != 4 {
		t.Fatalf("got %+v, %v", devices, err)
	}
	for i, d := range devices {
		want := m.Cards[i]
		want.Bridges, want.NUMA, want.Major, want.DevMinor = nil, -1, 0, 0
		if diff := cmp.Diff(want, d); diff != "" {
			t.Errorf("card %d (-want +got):\n%s", i, diff)
		}
	}
	if h, err := both.Host(t.Context()); err != nil || h.DriverVersion != m.DriverVersion {
		t.Errorf("host %+v, %v", h, err)
	}
	if _, errs := eflib.SampleAll(t.Context(), both, devices, eflib.AllFields, time.Second); errors.Join(errs...) != nil {
		t.Error(errors.Join(errs...))
	}
	// One run serves all who ask within a moment; a slow machine may need another.
	if runs := tool.Runs(); runs > 4 {
		t.Errorf("the tool was run %d times for six questions", runs)
	}
}

// A release that prints something else with -q is read by its table.
func TestFallsBackToTheTable(t *testing.T) {
	t.Parallel()
	table := archive(t, "testdata/table.txtar")[3].text
	var mu sync.Mutex
	var runs []string
	tool := efsmi.New(func(_ context.Context, args ...string) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		runs = append(runs, strings.Join(args, " "))
		if len(args) > 0 {
			return []byte("usage: efsmi [options]"), nil
		}
		return []byte(table), nil
	})
	devices, err := tool.Devices(t.Context())
	if err != nil || len(devices) != 2 || devices[0].Model != "L300" || devices[0].MemoryMiB != 147456 || devices[0].Health.Problem() != "health not supported" {
		t.Errorf("got %+v, %v", devices, err)
	}
	if !slices.Equal(runs, []string{"-q", ""}) {
		t.Errorf("runs %q", runs)
	}
}

func script(t *testing.T, text string) efsmi.Runner {
	t.Helper()
	path := filepath.Join(t.TempDir(), "efsmi")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return efsmi.Command(path)
}

func TestCommand(t *testing.T) {
	// Not parallel: a script that is still being written by another fork cannot be run.
	if out, err := script(t, `echo "$LC_ALL $@"`)(t.Context(), "-q"); err != nil || string(out) != "C -q\n" {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := script(t, "echo no driver >&2; exit 3")(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3: no driver") {
		t.Errorf("a failure: %v", err)
	}
	if _, err := script(t, "while :; do echo 0123456789012345678901234567890123456789012345678901234567890123456789; done")(t.Context()); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("endless output: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := script(t, "sleep 60")(ctx); !errors.Is(err, eflib.ErrTimeout) || time.Since(start) > 10*time.Second {
		t.Errorf("a tool that hangs: %v after %v", err, time.Since(start))
	}
	if _, err := efsmi.Command("/none/efsmi")(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no tool: %v", err)
	}
}

// TestOneFileStartsProcesses holds the package to its promise.
func TestOneFileStartsProcesses(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if starts := strings.Contains(string(b), "\n\t\"os/exec\"\n"); starts != (file == "run.go") {
			t.Errorf("%s imports os/exec: %t", file, starts)
		}
	}
}
