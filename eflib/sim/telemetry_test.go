package sim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/eflibtest"
	"github.com/topscloud/topscloud/eflib/sim"
)

func TestTelemetry(t *testing.T) {
	eflibtest.TestTelemetry(t, eflibtest.Can{Fields: eflib.AllFields &^ eflib.FieldPGUsage, Alone: true, Joined: true},
		func(t *testing.T, m sim.Machine) eflibtest.Rig {
			control := filepath.Join(t.TempDir(), "faults")
			base := m.Clone()
			live := sim.NewLive(m, control)
			return eflibtest.Rig{Inventory: live, Telemetry: live, Show: func(now sim.Machine) {
				if err := sim.WriteFaults(control, faultsOf(base, now)...); err != nil {
					t.Error(err)
				}
			}}
		})
}

// faultsOf finds the faults that the suite applies.
func faultsOf(base, now sim.Machine) []sim.Fault {
	var faults []sim.Fault
	if now.DriverVersion == "" {
		faults = append(faults, sim.Fault{Kind: "driver", Args: []string{"none"}})
	}
	for _, c := range base.Cards {
		i := slices.IndexFunc(now.Cards, func(d eflib.Device) bool { return d.Minor == c.Minor })
		switch {
		case i < 0:
			faults = append(faults, sim.Fault{Kind: "unplug", Minor: c.Minor})
		case now.Hangs(c.Minor):
			faults = append(faults, sim.Fault{Kind: "hang", Minor: c.Minor})
		case now.Cards[i].Health.State != eflib.Healthy:
			faults = append(faults, sim.Fault{Kind: "unhealthy", Minor: c.Minor, Args: strings.Fields(now.Cards[i].Health.Cause)})
		}
	}
	return faults
}

func TestControlFile(t *testing.T) {
	t.Parallel()
	control := filepath.Join(t.TempDir(), "faults")
	live := sim.NewLive(preset(t, "s60x8"), control)
	if devices, err := live.Devices(t.Context()); err != nil || len(devices) != 8 {
		t.Fatalf("no file: %d devices, %v", len(devices), err)
	}
	text := `# a comment
unplug 0
hang 1

ecc-double-bit 2 7
too-hot 3 110
memory-used 4 2048
link 5 3 8
virtualization 6 sriov-pf
driver 9.9
explode 1
hang 200
unhealthy 7
unplug 99
`
	if err := os.WriteFile(control, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	devices, err := live.Devices(t.Context())
	for _, line := range []string{"line 11", "line 12", "line 13"} {
		if err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("the error does not name %s: %v", line, err)
		}
	}
	if len(devices) != 7 || devices[0].Health.Problem() != "does not answer" || devices[1].Health.Problem() != "double-bit ECC error" {
		t.Fatalf("got %+v", devices)
	}
	var got []string
	for _, d := range devices[1:6] {
		s, err := live.Sample(t.Context(), d, eflib.AllFields)
		if err != nil {
			t.Fatal(err)
		}
		ecc, _ := s.ECC.Value()
		memory, _ := s.Memory.Value()
		link, _ := s.PCIeLink.Value()
		got = append(got, fmt.Sprint(ecc.DoubleBit, s.ASICCelsius, memory.UsedBytes>>20, link.Generation, "x", link.Width, s.Virtualization))
	}
	want := []string{"7 42 0 5x16 0", "0 110 0 5x16 0", "0 44 2048 5x16 0", "0 45 0 3x8 0", "0 46 0 5x16 3"}
	for i := range want {
		want[i] = strings.Join(strings.Fields(want[i]), " ")
		got[i] = strings.Join(strings.Fields(strings.ReplaceAll(got[i], " x ", "x")), " ")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if host, err := live.Host(t.Context()); err != nil || host.DriverVersion != "9.9" {
		t.Errorf("host %+v, %v", host, err)
	}
	if err := os.Remove(control); err != nil {
		t.Fatal(err)
	}
	if devices, err := live.Devices(t.Context()); err != nil || len(devices) != 8 || devices[2].Health.Problem() != "" {
		t.Errorf("the faults were not healed: %+v, %v", devices, err)
	}
}

func FuzzParseFaults(f *testing.F) {
	for _, s := range []string{"unplug 0", "link 1 3 8\nhang 1", "driver none", "unhealthy 7 a b c", "#", "too-hot 1 999", "virtualization 0 mdev"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		faults, _ := sim.ParseFaults(text)
		for _, fault := range faults {
			again, err := sim.ParseFaults(fault.String())
			if err != nil || len(again) != 1 || again[0].String() != fault.String() {
				t.Errorf("%q was written as %q and read as %v, %v", text, fault, again, err)
			}
		}
	})
}
