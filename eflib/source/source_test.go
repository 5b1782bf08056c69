package source_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/eflibtest"
	"github.com/topscloud/topscloud/eflib/efsmi"
	"github.com/topscloud/topscloud/eflib/efsmi/efsmitest"
	"github.com/topscloud/topscloud/eflib/libefml/libefmltest"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/eflib/sysfs"
)

// host is a real host made of a sysfs tree and a made-up libefml.
func host(t *testing.T, m sim.Machine) (*source.Source, func(sim.Machine)) {
	t.Helper()
	root, stub := t.TempDir(), libefmltest.New(t)
	show := func(m sim.Machine) {
		if err := m.WriteSysfs(root); err != nil {
			t.Error(err)
		}
		stub.Show(m)
	}
	show(m)
	s, err := source.Open(source.Options{HostRoot: root, Library: stub.Library, Interval: 50 * time.Millisecond, CallTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, show
}

func preset(t *testing.T, name string) sim.Machine {
	t.Helper()
	m, err := sim.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestInventoryWithLibefml(t *testing.T) {
	eflibtest.TestInventory(t, func(t *testing.T, m sim.Machine) eflibtest.Backend {
		s, _ := host(t, m)
		return s
	})
}

func TestTelemetryWithLibefml(t *testing.T) {
	can := eflibtest.Can{Fields: eflib.AllFields &^ eflib.FieldPGUsage, Alone: true, Joined: true}
	eflibtest.TestTelemetry(t, can, func(t *testing.T, m sim.Machine) eflibtest.Rig {
		s, show := host(t, m)
		return eflibtest.Rig{Inventory: s, Telemetry: s, Show: show}
	})
}

func withTool(t *testing.T, m sim.Machine) (*source.Joined, func(sim.Machine)) {
	t.Helper()
	root, tool := t.TempDir(), &efsmitest.Tool{}
	show := func(m sim.Machine) {
		if err := m.WriteSysfs(root); err != nil {
			t.Error(err)
		}
		tool.Show(m)
	}
	show(m)
	return source.Join(sysfs.New(os.DirFS(root)), efsmi.New(tool.Run)), show
}

func TestInventoryWithEfsmi(t *testing.T) {
	eflibtest.TestInventory(t, func(t *testing.T, m sim.Machine) eflibtest.Backend {
		s, _ := withTool(t, m)
		return s
	})
}

func TestTelemetryWithEfsmi(t *testing.T) {
	can := eflibtest.Can{Slow: 120 * time.Millisecond, Fields: eflib.FieldIdentity | eflib.FieldHealth | eflib.FieldMemory | eflib.FieldPower |
		eflib.FieldTemperature | eflib.FieldClock | eflib.FieldUsage | eflib.FieldPCIeLink | eflib.FieldPCIeThroughput |
		eflib.FieldRMA | eflib.FieldPowerMode}
	eflibtest.TestTelemetry(t, can, func(t *testing.T, m sim.Machine) eflibtest.Rig {
		s, show := withTool(t, m)
		return eflibtest.Rig{Inventory: s, Telemetry: s, Show: show}
	})
}

// A card that never answered has no uuid that changes later; one that did keeps its own, and a card
// that was swapped has the new one.
func TestIdentity(t *testing.T) {
	t.Parallel()
	m := preset(t, "mixed")
	stuck := m.Clone()
	fault(t, &stuck, "hang 1")
	s, show := host(t, stuck)
	look := func() (eflib.Device, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		devices, err := s.Devices(ctx)
		if len(devices) != 4 {
			t.Fatalf("got %+v, %v", devices, err)
		}
		return devices[1], err
	}
	d, err := look()
	if d.UUID != "" || d.Health.Problem() != "does not answer" || !errors.Is(err, eflib.ErrTimeout) {
		t.Errorf("never answered: %+v, %v", d, err)
	}
	show(m)
	until(t, func() bool { d, err = look(); return err == nil })
	if d.UUID != m.Cards[1].UUID || d.SerialNumber == "" || d.Health.State != eflib.Healthy {
		t.Errorf("answered: %+v", d)
	}
	show(stuck)
	d, err = look()
	if d.UUID != m.Cards[1].UUID || d.MemoryMiB != m.Cards[1].MemoryMiB || d.Health.Problem() != "does not answer" || err == nil {
		t.Errorf("answers no more: %+v, %v", d, err)
	}
	swapped := m.Clone()
	swapped.Cards[1].UUID = "GCU-NEW"
	show(swapped)
	until(t, func() bool { d, err = look(); return err == nil })
	if d.UUID != "GCU-NEW" {
		t.Errorf("swapped: %+v", d)
	}
}

// The card tells its memory where the table of models does not, and tells it from the usable part.
func TestMemoryFromTheCard(t *testing.T) {
	t.Parallel()
	m := preset(t, "s60x8")
	m.Cards = m.Cards[:2]
	m.Cards[0].MemoryMiB = 49120 // ECC off
	m.Cards[1].DeviceID, m.Cards[1].Model, m.Cards[1].MemoryMiB = 0xc042, "L600", 147456
	s, _ := host(t, m)
	devices, err := s.Devices(t.Context())
	if err != nil || len(devices) != 2 || devices[0].MemoryMiB != 49120 || devices[1].MemoryMiB != 147456 {
		t.Errorf("got %+v, %v", devices, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for name, tt := range map[string]struct {
		o    source.Options
		want string
	}{
		"an unknown source":       {source.Options{Source: "magic"}, "auto, sysfs, libefml, efsmi, sim"},
		"sim without a machine":   {source.Options{Source: source.Sim}, "s60x8"},
		"sim of an unknown one":   {source.Options{Source: source.Sim, Machine: "s70"}, "s60x8"},
		"a machine without sim":   {source.Options{Machine: "s60x8"}, "source sim"},
		"faults without sim":      {source.Options{Source: source.Sysfs, ControlFile: "x"}, "source sim"},
		"a library that is not":   {source.Options{Source: source.Libefml, Library: filepath.Join(empty, "x.so"), HostRoot: empty}, "libefml cannot be loaded"},
		"a library that is none":  {source.Options{Source: source.Libefml, Library: text(t), HostRoot: empty}, "text.so"},
		"a tool that nobody has":  {source.Options{Source: source.Efsmi, HostRoot: empty}, "efsmi"},
		"an unknown source, case": {source.Options{Source: "SIM"}, "want one of"},
	} {
		s, err := source.Open(tt.o)
		if err == nil || s != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, %v, want an error about %q", name, s, err, tt.want)
		}
	}
}

func text(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(path, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAutoOnABareHost(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := preset(t, "mixed").WriteSysfs(root); err != nil {
		t.Fatal(err)
	}
	s, err := source.Open(source.Options{HostRoot: root, Library: filepath.Join(root, "none.so")})
	if err != nil {
		t.Fatal(err)
	}
	if s.String() != source.Sysfs {
		t.Skipf("this machine has %s", s)
	}
	devices, err := s.Devices(t.Context())
	if err != nil || len(devices) != 4 || devices[0].Health.Problem() != "health unknown" {
		t.Errorf("got %+v, %v", devices, err)
	}
}

func TestSim(t *testing.T) {
	t.Parallel()
	control := filepath.Join(t.TempDir(), "faults")
	s, err := source.Open(source.Options{Source: source.Sim, Machine: "s60x8", Node: "n1", ControlFile: control, Interval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	states := s.Watch(ctx)
	if first := <-states; first.Err != nil || len(first.Devices) != 8 || first.Devices[0].UUID != preset(t, "s60x8").ForNode("n1").Cards[0].UUID {
		t.Errorf("got %+v", first)
	}
	if err := sim.WriteFaults(control, sim.Fault{Kind: "unplug", Minor: 7}, sim.Fault{Kind: "too-hot", Minor: 0}); err != nil {
		t.Fatal(err)
	}
	if second := <-states; len(second.Devices) != 7 || second.Devices[0].Health.Problem() != "too hot" {
		t.Errorf("got %+v", second)
	}
	if err := sim.WriteFaults(control, sim.Fault{Kind: "driver", Args: []string{"none"}}); err != nil {
		t.Fatal(err)
	}
	third := <-states
	if !errors.Is(third.Err, eflib.ErrDriverNotLoaded) || len(third.Devices) != 7 || third.Devices[0].Health.Problem() != "driver not loaded" {
		t.Errorf("without the driver: %+v", third)
	}
	cancel()
	for range states {
	}
}

// An event of the driver is a reason to look at once, long before the interval is over.
func TestEventIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	m := preset(t, "mixed")
	root, stub := t.TempDir(), libefmltest.New(t)
	if err := m.WriteSysfs(root); err != nil {
		t.Fatal(err)
	}
	stub.Show(m)
	stub.Set("EfmlGetEvent", "-", "on")
	s, err := source.Open(source.Options{Source: source.Libefml, HostRoot: root, Library: stub.Library, Interval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	states := s.Watch(ctx)
	if first := <-states; first.Err != nil || len(first.Devices) != 4 {
		t.Fatalf("got %+v", first)
	}
	stub.Set("EfmlGetDevHealth", "2", "0")
	stub.Set("EfmlGetEvent", "1", "7 20 something broke")
	if second, open := <-states; !open || second.Devices[2].Health.State != eflib.Unhealthy {
		t.Errorf("got %+v", second)
	}
}

func fault(t *testing.T, m *sim.Machine, line string) {
	t.Helper()
	faults, err := sim.ParseFaults(line)
	if err == nil {
		err = faults[0].Apply(m)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func until(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come about in 10 s")
		}
	}
}
