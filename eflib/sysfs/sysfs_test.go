package sysfs_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/eflibtest"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/eflib/sysfs"
	"github.com/topscloud/topscloud/topology"
)

func TestConformance(t *testing.T) {
	eflibtest.TestInventory(t, func(t *testing.T, m sim.Machine) eflibtest.Backend {
		root := t.TempDir()
		if err := m.WriteSysfs(root); err != nil {
			t.Fatal(err)
		}
		return sysfs.New(os.DirFS(root))
	})
}

// A root opened with os.OpenRoot refuses links that lead out of it; the tree has none.
func TestReadsBelowARoot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := sim.Preset("s60x8")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.WriteSysfs(dir); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if devices, err := sysfs.New(root.FS()).Devices(t.Context()); err != nil || len(devices) != 8 {
		t.Errorf("got %d devices, %v", len(devices), err)
	}
}

func TestRewrittenTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m, err := sim.Preset("t20x4")
	if err != nil {
		t.Fatal(err)
	}
	inventory := sysfs.New(os.DirFS(dir))
	for left := 4; left >= 0; left-- {
		if err := m.WriteSysfs(dir); err != nil {
			t.Fatal(err)
		}
		if devices, err := inventory.Devices(t.Context()); err != nil || len(devices) != left {
			t.Fatalf("got %d devices, %v, want %d", len(devices), err, left)
		}
		m.Remove(left - 1)
	}
	if trees, err := filepath.Glob(filepath.Join(dir, ".sim-sys-*")); err != nil || len(trees) != 2 {
		t.Errorf("trees left: %v, %v, want the present one and the one before", trees, err)
	}
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }

// host is a tree with the driver and the given entries.
func host(entries ...fstest.MapFS) fstest.MapFS {
	all := fstest.MapFS{
		"sys/module/enflame/version": file("1.8.7"),
		topology.PCIDevices:          {Mode: fs.ModeDir | 0o755},
	}
	for _, e := range entries {
		maps.Copy(all, e)
	}
	return all
}

// card is an S60 directly on a root complex. edit changes its files, given its folder.
func card(address, name string, edit func(files fstest.MapFS, at string)) fstest.MapFS {
	at := "sys/devices/pci0000:0c/" + address
	files := fstest.MapFS{
		path.Join(topology.PCIDevices, address): {Mode: fs.ModeSymlink, Data: []byte("../../../devices/pci0000:0c/" + address)},
		at + "/vendor":                          file("0x1e36"),
		at + "/device":                          file("0xc035"),
		at + "/class":                           file("0x120000"),
		at + "/numa_node":                       file("1"),
		at + "/enflame/" + name + "/dev":        file("240:" + strings.TrimPrefix(name, "gcu")),
		at + "/enflame/power":                   file("on"),
	}
	if edit != nil {
		edit(files, at)
	}
	return files
}

func TestOddEntries(t *testing.T) {
	t.Parallel()
	const odd = "0000:0c:02.0"
	entry := path.Join(topology.PCIDevices, odd)
	set := func(file, text string) func(fstest.MapFS, string) {
		return func(files fstest.MapFS, at string) { files[at+"/"+file] = &fstest.MapFile{Data: []byte(text)} }
	}
	without := func(file string) func(fstest.MapFS, string) {
		return func(files fstest.MapFS, at string) { delete(files, at+"/"+file) }
	}
	// Beside two good cards with minors 0 and 5 there is one odd entry.
	for name, tt := range map[string]struct {
		odd    fstest.MapFS
		kept   bool   // the odd card, minor 1, is a device nevertheless
		want   string // in the error; empty is none
		target error
	}{
		"no vendor file":    {odd: card(odd, "gcu1", without("vendor")), want: "vendor"},
		"vendor is garbage": {odd: card(odd, "gcu1", set("vendor", "0xzzzz")), want: "vendor"},
		"another vendor": {odd: card(odd, "gcu1", func(f fstest.MapFS, at string) {
			f[at+"/vendor"] = file("0x8086")
			delete(f, at+"/enflame/gcu1/dev")
			delete(f, at+"/enflame/power")
		})},
		"another vendor, our driver": {odd: card(odd, "gcu1", set("vendor", "0x8086")), want: "vendor 0x8086"},
		"no class":                   {odd: card(odd, "gcu1", without("class")), want: "class"},
		"no device id":               {odd: card(odd, "gcu1", without("device")), want: "device"},
		"a bridge of the vendor": {odd: card(odd, "gcu1", func(f fstest.MapFS, at string) {
			f[at+"/class"] = file("0x060400")
			delete(f, at+"/enflame/gcu1/dev")
			delete(f, at+"/enflame/power")
		})},
		"no driver bound": {odd: card(odd, "gcu1", func(f fstest.MapFS, at string) {
			delete(f, at+"/enflame/gcu1/dev")
			delete(f, at+"/enflame/power")
		}), want: "no driver", target: eflib.ErrNotBound},
		"the driver's folder without a card": {odd: card(odd, "gcu1", without("enflame/gcu1/dev")), want: "no gcuN"},
		"a card without dev": {odd: card(odd, "gcu1", func(f fstest.MapFS, at string) {
			f[at+"/enflame/gcu1/x"] = f[at+"/enflame/gcu1/dev"]
			delete(f, at+"/enflame/gcu1/dev")
		}), want: "dev", target: fs.ErrNotExist},
		"dev is garbage":                  {odd: card(odd, "gcu1", set("enflame/gcu1/dev", "240")), want: "major:minor"},
		"two cards in one":                {odd: card(odd, "gcu1", set("enflame/gcu2/dev", "240:2")), want: "both gcu1 and gcu2"},
		"a minor out of range":            {odd: card(odd, "gcu128", nil), want: "no gcuN"},
		"no numa_node":                    {odd: card(odd, "gcu1", without("numa_node")), kept: true},
		"numa_node is garbage":            {odd: card(odd, "gcu1", set("numa_node", "x")), kept: true},
		"an unknown model":                {odd: card(odd, "gcu1", set("device", "0xffff")), kept: true, want: "ffff", target: eflib.ErrUnknownModel},
		"a model without a memory figure": {odd: card(odd, "gcu1", set("device", "0xc042")), kept: true, want: "L600", target: eflib.ErrUnknownMemory},
		"an older driver": {odd: card(odd, "gcu1", func(f fstest.MapFS, at string) {
			f[at+"/zixiao/gcu1/dev"] = f[at+"/enflame/gcu1/dev"]
			delete(f, at+"/enflame/gcu1/dev")
			delete(f, at+"/enflame/power")
		}), kept: true},
		"a dangling link":   {odd: fstest.MapFS{entry: {Mode: fs.ModeSymlink, Data: []byte("../../../devices/gone")}}, want: odd, target: fs.ErrNotExist},
		"a plain file":      {odd: fstest.MapFS{entry: file("")}, want: odd},
		"a folder, no link": {odd: fstest.MapFS{entry + "/vendor": file("0x1e36"), entry + "/class": file("0x120000"), entry + "/device": file("0xc035")}, want: odd},
		"a platform device": {odd: fstest.MapFS{
			entry:                               {Mode: fs.ModeSymlink, Data: []byte("../../../devices/platform/gcu.0")},
			"sys/devices/platform/gcu.0/vendor": file("0x1e36"), "sys/devices/platform/gcu.0/class": file("0x120000"),
			"sys/devices/platform/gcu.0/device": file("0xc035"), "sys/devices/platform/gcu.0/enflame/gcu1/dev": file("240:1"),
		}, want: "no PCI root complex"},
		"a name that is no address": {odd: fstest.MapFS{
			topology.PCIDevices + "/gcu": {Mode: fs.ModeSymlink, Data: []byte("../../../devices/pci0000:0c/0000:0c:00.0")},
		}, want: "device gcu:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := host(card("0000:0c:00.0", "gcu5", nil), card("0000:0c:01.0", "gcu0", nil), tt.odd)
			devices, err := sysfs.New(fsys).Devices(t.Context())
			want := []int{0, 5}
			if tt.kept {
				want = []int{0, 1, 5}
			}
			var got []int
			for _, d := range devices {
				got = append(got, d.Minor)
				if known := d.Minor != 1; known && (d.NUMA != 1 || d.MemoryMiB != 42976) {
					t.Errorf("a good card came out as %+v", d)
				}
			}
			if !cmp.Equal(got, want) {
				t.Errorf("got cards %v, want %v", got, want)
			}
			if tt.want == "" {
				if err != nil {
					t.Errorf("got %v, want no error", err)
				}
				return
			}
			if list, all := eflib.DeviceErrors(err); len(list) != 1 || !all || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want one error about %q", err, tt.want)
			}
			if tt.target != nil && !errors.Is(err, tt.target) {
				t.Errorf("got %v, want %v", err, tt.target)
			}
		})
	}
}

func TestTwoCardsOfOneMinor(t *testing.T) {
	t.Parallel()
	fsys := host(card("0000:0c:00.0", "gcu1", nil), card("0000:0c:01.0", "gcu0", nil), card("0000:0c:02.0", "gcu1", nil))
	devices, err := sysfs.New(fsys).Devices(t.Context())
	if len(devices) != 1 || devices[0].Minor != 0 {
		t.Errorf("got %+v", devices)
	}
	list, all := eflib.DeviceErrors(err)
	if len(list) != 2 || !all || !errors.Is(list[0], eflib.ErrDuplicateMinor) || list[1].Entry != "0000:0c:02.0" {
		t.Errorf("got %v", err)
	}
}

func TestOneCardInFull(t *testing.T) {
	t.Parallel()
	got, err := sysfs.New(host(card("0000:0c:00.0", "gcu17", nil))).Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []eflib.Device{{
		Minor: 17, UUID: "GCU-PCI-0000:0c:00.0", Model: "S60", Product: "scorpio", Family: "SCORPIO",
		VendorID: 0x1e36, DeviceID: 0xc035, MemoryMiB: 42976, PCIAddress: topology.Address{Bus: 0x0c},
		Bridges: []string{"pci0000:0c"}, NUMA: 1, Node: "/dev/gcu17", Major: 240, DevMinor: 17,
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	fsys := host()
	if h, err := sysfs.New(fsys).Host(t.Context()); err != nil || h != (eflib.Host{DriverVersion: "1.8.7"}) {
		t.Errorf("without a machine name: got %+v, %v", h, err)
	}
	delete(fsys, topology.PCIDevices)
	if devices, err := sysfs.New(fsys).Devices(t.Context()); devices != nil || !errors.Is(err, eflib.ErrNotSupported) {
		t.Errorf("without a PCI bus: got %v, %v", devices, err)
	}
}
