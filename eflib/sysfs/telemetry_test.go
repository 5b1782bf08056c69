package sysfs_test

import (
	"errors"
	"os"
	"testing"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/eflibtest"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/eflib/sysfs"
)

func TestTelemetry(t *testing.T) {
	eflibtest.TestTelemetry(t, eflibtest.Can{Fields: eflib.FieldPCIeLink}, func(t *testing.T, m sim.Machine) eflibtest.Rig {
		root := t.TempDir()
		show := func(m sim.Machine) {
			if err := m.WriteSysfs(root); err != nil {
				t.Error(err)
			}
		}
		show(m)
		i := sysfs.New(os.DirFS(root))
		return eflibtest.Rig{Inventory: i, Telemetry: i, Show: show}
	})
}

func TestLink(t *testing.T) {
	t.Parallel()
	const at = "sys/devices/pci0000:0c/0000:0c:00.0/"
	for name, tt := range map[string]struct {
		current, most, width, widest string
		want                         eflib.Link
		err                          error
	}{
		"a full link":        {"32.0 GT/s PCIe", "32.0 GT/s PCIe", "16", "16", eflib.Link{Generation: 5, MaxGeneration: 5, Width: 16, MaxWidth: 16}, nil},
		"an older kernel":    {"8 GT/s", "16 GT/s", "8", "16", eflib.Link{Generation: 3, MaxGeneration: 4, Width: 8, MaxWidth: 16}, nil},
		"unknown":            {"Unknown", "32.0 GT/s PCIe", "16", "16", eflib.Link{}, eflib.ErrImplausible},
		"unknown speed":      {"Unknown speed", "32.0 GT/s PCIe", "16", "16", eflib.Link{}, eflib.ErrImplausible},
		"no link":            {"32.0 GT/s PCIe", "32.0 GT/s PCIe", "0", "16", eflib.Link{}, eflib.ErrImplausible},
		"a width of 255":     {"32.0 GT/s PCIe", "32.0 GT/s PCIe", "255", "255", eflib.Link{}, eflib.ErrImplausible},
		"wider than it can":  {"32.0 GT/s PCIe", "32.0 GT/s PCIe", "16", "8", eflib.Link{}, eflib.ErrImplausible},
		"the file is absent": {"", "", "", "", eflib.Link{}, eflib.ErrNotSupported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := host(card("0000:0c:00.0", "gcu0", nil))
			if tt.current != "" {
				fsys[at+"current_link_speed"], fsys[at+"max_link_speed"] = file(tt.current), file(tt.most)
				fsys[at+"current_link_width"], fsys[at+"max_link_width"] = file(tt.width), file(tt.widest)
			}
			i := sysfs.New(fsys)
			devices, err := i.Devices(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s, err := i.Sample(t.Context(), devices[0], eflib.AllFields)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.PCIeLink.Get(); got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
