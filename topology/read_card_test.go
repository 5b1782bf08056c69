package topology_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/topscloud/topscloud/topology"
)

func link(target string) *fstest.MapFile {
	return &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte(target)}
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

const entry = topology.PCIDevices + "/0000:11:00.0"

func TestReadCard(t *testing.T) {
	t.Parallel()
	const below = "devices/pci0000:0c/0000:0c:02.0/0000:0d:00.0/0000:11:00.0"
	bridges := []string{"0000:0d:00.0", "0000:0c:02.0", "pci0000:0c"}
	for name, tt := range map[string]struct {
		fsys    fstest.MapFS
		bridges []string
		numa    int
		fails   bool
	}{
		"below two bridges": {
			fsys:    fstest.MapFS{entry: link("../../../" + below), "sys/" + below + "/numa_node": file("1\n")},
			bridges: bridges, numa: 1,
		},
		"the kernel does not know the node": {
			fsys:    fstest.MapFS{entry: link("../../../" + below), "sys/" + below + "/numa_node": file("-1\n")},
			bridges: bridges, numa: -1,
		},
		"no numa_node": {
			fsys:    fstest.MapFS{entry: link("../../../" + below), "sys/" + below + "/vendor": file("")},
			bridges: bridges, numa: -1,
		},
		"numa_node is garbage": {
			fsys:    fstest.MapFS{entry: link("../../../" + below), "sys/" + below + "/numa_node": file("zero")},
			bridges: bridges, numa: -1,
		},
		"numa_node is a folder": {
			fsys:    fstest.MapFS{entry: link("../../../" + below), "sys/" + below + "/numa_node/x": file("0")},
			bridges: bridges, numa: -1,
		},
		"directly on the root complex": {
			fsys:    fstest.MapFS{entry: link("../../../devices/pci0002:00/0000:11:00.0"), "sys/devices/pci0002:00/0000:11:00.0/numa_node": file("0")},
			bridges: []string{"pci0002:00"}, numa: 0,
		},
		"a root complex below a platform device": {
			fsys:    fstest.MapFS{entry: link("../../../devices/platform/soc/pci0002:00/0000:11:00.0"), "sys/devices/platform/soc/pci0002:00/0000:11:00.0/vendor": file("0")},
			bridges: []string{"pci0002:00"}, numa: -1,
		},
		"a root complex inside another": {
			fsys: fstest.MapFS{
				entry: link("../../../devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/0000:11:00.0"),
				"sys/devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:06.0/0000:11:00.0/vendor": file("0"),
			},
			bridges: []string{"10000:e0:06.0", "pci10000:e0"}, numa: -1,
		},
		"no entry":               {fsys: fstest.MapFS{}, fails: true},
		"a folder, not a link":   {fsys: fstest.MapFS{entry + "/vendor": file("0x1e36")}, fails: true},
		"a dangling link":        {fsys: fstest.MapFS{entry: link("../../../" + below)}, fails: true},
		"a platform device":      {fsys: fstest.MapFS{entry: link("../../../devices/platform/gcu.0"), "sys/devices/platform/gcu.0/x": file("")}, fails: true},
		"another device":         {fsys: fstest.MapFS{entry: link("../../../devices/pci0000:0c/0000:12:00.0"), "sys/devices/pci0000:0c/0000:12:00.0/x": file("")}, fails: true},
		"an absolute link":       {fsys: fstest.MapFS{entry: link("/sys/" + below), "sys/" + below + "/x": file("")}, fails: true},
		"a link out of the host": {fsys: fstest.MapFS{entry: link("../../../../../../" + below)}, fails: true},
		"a part that is no address": {
			fsys: fstest.MapFS{entry: link("../../../devices/pci0000:0c/virtual/0000:11:00.0"), "sys/devices/pci0000:0c/virtual/0000:11:00.0/x": file("")}, fails: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, numa, err := topology.ReadCard(tt.fsys, "0000:11:00.0")
			if tt.fails {
				if err == nil || got != nil || numa != -1 {
					t.Errorf("got %v, %d, %v, want an error", got, numa, err)
				}
				return
			}
			if err != nil || !slices.Equal(got, tt.bridges) || numa != tt.numa {
				t.Errorf("got %v, %d, %v, want %v, %d", got, numa, err, tt.bridges, tt.numa)
			}
		})
	}
}

func TestReadCardRefusesANameThatIsNoAddress(t *testing.T) {
	t.Parallel()
	if _, _, err := topology.ReadCard(fstest.MapFS{}, "../../etc"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want a refusal of the name", err)
	}
}

func TestParseAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0000:40:00.0":      "0000:40:00.0",
		"40:00.0":           "0000:40:00.0",
		"0000:AF:1F.7":      "0000:af:1f.7",
		"10000:e0:06.0":     "10000:e0:06.0",
		"00:23:00.0":        "",
		"":                  "",
		"0000:40:20.0":      "",
		"0000:40:00.8":      "",
		"0000:40:00":        "",
		"0000:40:00.00":     "",
		"+000:40:00.0":      "",
		"0x00:40:00.0":      "",
		":40:00.0":          "",
		"0000:4_:00.0":      "",
		"0000:40:00.0 ":     "",
		"000000000:40:00.0": "",
	} {
		a, err := topology.ParseAddress(text)
		if want == "" {
			if err == nil {
				t.Errorf("%q: got %v, want an error", text, a)
			}
			continue
		}
		if err != nil || a.String() != want {
			t.Errorf("%q: got %v, %v, want %s", text, a, err, want)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, text := range []string{"0000:40:00.0", "23:00.0", "00:23:00.0", "ffffffff:ff:1f.7", "", "::."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := topology.ParseAddress(text)
		if err != nil {
			if a != (topology.Address{}) {
				t.Errorf("%q: an error and %v", text, a)
			}
			return
		}
		again, err := topology.ParseAddress(a.String())
		if err != nil || again != a || a.Compare(again) != 0 {
			t.Errorf("%q: read %v, read again %v, %v", text, a, again, err)
		}
	})
}

func FuzzReadCard(f *testing.F) {
	f.Add("../../../devices/pci0000:0c/0000:0c:02.0/0000:11:00.0", "0\n")
	f.Add("../../../devices/pci0000:00/pci0000:00/0000:11:00.0", "-1")
	f.Add("..", "1e3")
	f.Fuzz(func(t *testing.T, target, numa string) {
		const at = "sys/devices/pci0000:0c/0000:11:00.0"
		bridges, node, err := topology.ReadCard(fstest.MapFS{entry: link(target), at + "/numa_node": file(numa)}, "0000:11:00.0")
		if err != nil {
			return
		}
		if len(bridges) == 0 || node < -1 || node > 1023 {
			t.Errorf("link %q, node %q: got %v, %d", target, numa, bridges, node)
		}
		if _, err := topology.New([]topology.Card{{Bridges: bridges, NUMA: node}}); err != nil {
			t.Errorf("link %q: %v", target, err)
		}
	})
}
