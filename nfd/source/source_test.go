package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/efsmi"
	"github.com/topscloud/topscloud/eflib/efsmi/efsmitest"
	"github.com/topscloud/topscloud/eflib/libefml/libefmltest"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/nfd/labels"
)

func preset(t testing.TB, name string) sim.Machine {
	t.Helper()
	m, err := sim.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func opened(t *testing.T, o Options) *Reader {
	t.Helper()
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func read(t *testing.T, r *Reader) labels.Facts {
	t.Helper()
	f, _, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func host(t *testing.T, m sim.Machine) string {
	t.Helper()
	root := t.TempDir()
	if err := m.WriteSysfs(root); err != nil {
		t.Fatal(err)
	}
	return root
}

// All places say the same of a machine that every one of them can read.
func TestPlacesAgree(t *testing.T) {
	m := preset(t, "mixed")
	want := labels.Facts{Driver: labels.Text{Value: "1.8.7"}, Machine: labels.Text{Value: "Simulated Server"}}
	for _, c := range m.Cards {
		want.Cards = append(want.Cards, labels.Card{Model: c.Model, Product: c.Product, Family: c.Family, MemoryMiB: c.MemoryMiB})
	}
	root, tool := host(t, m), &efsmitest.Tool{}
	tool.Show(m)
	readers := map[string]*Reader{
		"sim":        opened(t, Options{Order: []string{"sim"}, Machine: "mixed"}),
		"sysfs":      opened(t, Options{Order: []string{"sysfs"}, HostRoot: root}),
		"efsmi":      withTool(os.DirFS(root), tool.Run, "efsmi", 0),
		"efsmi-json": withTool(os.DirFS(root), jsonRunner(asJSON(tool.Run)), "efsmi-json", 0),
	}
	for name, r := range readers {
		if diff := cmp.Diff(want, read(t, r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	stub := libefmltest.New(t)
	stub.Show(m)
	r := opened(t, Options{HostRoot: root, Library: stub.Library})
	if !strings.Contains(r.String(), "libefml") {
		t.Errorf("the default order opened %s", r)
	}
	if diff := cmp.Diff(want, read(t, r)); diff != "" {
		t.Errorf("libefml (-want +got):\n%s", diff)
	}
}

// asJSON prints what a tool prints as JSON, in the only way that is known: its keys as they are.
func asJSON(run efsmi.Runner) efsmi.Runner {
	return func(ctx context.Context, _ ...string) ([]byte, error) {
		out, err := run(ctx, "-q")
		if err != nil {
			return nil, err
		}
		var b strings.Builder
		b.WriteString(`{"devices":{`)
		for i, group := range strings.Split(string(out), "DEV ID ")[1:] {
			id, rest, _ := strings.Cut(group, "\n")
			fmt.Fprintf(&b, `%s"DEV ID %s":{"Info":{"none":null`, map[bool]string{true: ","}[i > 0], strings.TrimSpace(id))
			seen := map[string]bool{}
			for line := range strings.Lines(rest) {
				key, value, ok := strings.Cut(line, ":")
				if key = strings.TrimSpace(key); ok && !seen[key] {
					seen[key] = true
					fmt.Fprintf(&b, `,%q:%q`, key, strings.TrimSpace(value))
				}
			}
			b.WriteString("}}")
		}
		return []byte(b.String() + "}}"), nil
	}
}

func TestWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	control := filepath.Join(t.TempDir(), "faults")
	r := opened(t, Options{Order: []string{"sim"}, Machine: "s60x8", ControlFile: control})
	set := func(lines ...string) {
		t.Helper()
		faults, err := sim.ParseFaults(strings.Join(lines, "\n"))
		if err == nil {
			err = sim.WriteFaults(control, faults...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set("unreadable 3")
	f, problems, err := r.Read(t.Context())
	if len(f.Cards) != 7 || f.Silent != 1 || problems == nil || err != nil {
		t.Errorf("an unreadable card: %d cards, %d silent, %v, %v", len(f.Cards), f.Silent, problems, err)
	}
	set("unplug 3")
	if f := read(t, r); f.Count() != 7 {
		t.Errorf("without card 3: %d", f.Count())
	}
	set("driver none")
	if _, _, err := r.Read(t.Context()); !errors.Is(err, eflib.ErrDriverNotLoaded) {
		t.Errorf("no driver: %v", err)
	}
	var all []string
	for n := range 8 {
		all = append(all, fmt.Sprint("unplug ", n))
	}
	set(all...)
	if f := read(t, r); f.Count() != 0 {
		t.Errorf("without cards: %d", f.Count())
	}
	set("virtualization 1 vgcu")
	if f := read(t, r); f.Count() != 8 || f.Cards[1].VirtualUnread || len(f.Cards[1].Virtual) != 0 {
		t.Errorf("a card that is not divided: %+v", f.Cards[1])
	}
}

// Without a driver the PCI bus says whether there are cards at all.
func TestNoDriver(t *testing.T) {
	t.Parallel()
	m := preset(t, "t20x4")
	m.DriverVersion = ""
	r := opened(t, Options{Order: []string{"sysfs"}, HostRoot: host(t, m)})
	if _, _, err := r.Read(t.Context()); !errors.Is(err, eflib.ErrDriverNotLoaded) {
		t.Errorf("cards without a driver: %v", err)
	}
	m.Cards = nil
	r = opened(t, Options{Order: []string{"sysfs"}, HostRoot: host(t, m)})
	if f, _, err := r.Read(t.Context()); err != nil || f.Count() != 0 {
		t.Errorf("no cards and no driver: %+v, %v", f, err)
	}
	r = opened(t, Options{Order: []string{"sysfs"}, HostRoot: t.TempDir()})
	if _, _, err := r.Read(t.Context()); err == nil {
		t.Error("a host whose bus cannot be seen has no cards")
	}
}

func TestOnBus(t *testing.T) {
	t.Parallel()
	entry := func(vendor, class string) fstest.MapFS {
		return fstest.MapFS{
			"sys/bus/pci/devices/0000:11:00.0/vendor": {Data: []byte(vendor + "\n")},
			"sys/bus/pci/devices/0000:11:00.0/class":  {Data: []byte(class + "\n")},
		}
	}
	for name, tt := range map[string]struct {
		host fstest.MapFS
		want bool
	}{
		"a card":             {entry("0x1e36", "0x120000"), true},
		"another vendor":     {entry("0x8086", "0x120000"), false},
		"a bridge of theirs": {entry("0x1e36", "0x060400"), false},
	} {
		if got, err := onBus(tt.host)(); got != tt.want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	if there, err := onBus(fstest.MapFS{"sys/bus/pci/devices/0000:11:00.0/class": {}})(); there || err == nil {
		t.Errorf("a function that cannot be read: %t, %v", there, err)
	}
}

// divided answers as a card that is divided into vGCUs.
type divided struct {
	eflib.Inventory
	parts eflib.Reading[[]eflib.VirtualDevice]
}

func (d divided) Host(context.Context) (eflib.Host, error) { return eflib.Host{}, errors.New("away") }

func (d divided) Sample(context.Context, eflib.Device, eflib.Field) (eflib.Sample, error) {
	return eflib.Sample{Virtualization: eflib.Known(eflib.VirtVGCU), VirtualDevices: d.parts}, nil
}

func TestVirtual(t *testing.T) {
	t.Parallel()
	m := preset(t, "t20x4")
	m.Cards = m.Cards[:1]
	at := func(parts eflib.Reading[[]eflib.VirtualDevice]) labels.Facts {
		return read(t, &Reader{cards: divided{&m, parts}, timeout: defaultTimeout})
	}
	f := at(eflib.Known([]eflib.VirtualDevice{
		{Number: 0, Memory: eflib.Known(eflib.Memory{TotalBytes: 8 << 30})},
		{Number: 1, Memory: eflib.Unknown[eflib.Memory](eflib.ErrTimeout)},
	}))
	want := []labels.Virtual{{MemoryMiB: 8192}, {Unread: true}}
	if diff := cmp.Diff(want, f.Cards[0].Virtual); diff != "" || !f.Driver.Unread || !f.Machine.Unread {
		t.Errorf("%+v (-want +got):\n%s", f, diff)
	}
	if f := at(eflib.Unknown[[]eflib.VirtualDevice](eflib.ErrTimeout)); !f.Cards[0].VirtualUnread {
		t.Errorf("not answered: %+v", f.Cards[0])
	}
	if f := at(eflib.Unknown[[]eflib.VirtualDevice](eflib.ErrNotSupported)); f.Cards[0].VirtualUnread {
		t.Errorf("not supported: %+v", f.Cards[0])
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for name, tt := range map[string]struct {
		o    Options
		want string
	}{
		"an unknown place":      {Options{Order: []string{"sysfs", "magic"}}, "want some of auto, libefml"},
		"sim beside another":    {Options{Order: []string{"sim", "sysfs"}, Machine: "mixed"}, "want it alone"},
		"a machine without sim": {Options{Order: []string{"sysfs"}, Machine: "mixed"}, "for source sim"},
		"sim without machine":   {Options{Order: []string{"sim"}}, "s60x8"},
		"a library that is not": {Options{Order: []string{"libefml"}, HostRoot: empty, Library: filepath.Join(empty, "x.so")}, "libefml"},
		"no tool for JSON":      {Options{Order: []string{"efsmi-json"}, HostRoot: empty}, "efsmi-json"},
	} {
		r, err := Open(tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v: want an error about %q", name, r, err, tt.want)
		}
	}
}

func TestQueryText(t *testing.T) {
	t.Parallel()
	text, err := queryText([]byte(`[{"DEV ID": 3, "PCIe Info": {"Bus": "b1", "List": [1, 2]}, "Health": true, "none": null, "odd": "a\nb"}]`))
	if want := "DEV ID 3\nBus : b1\nList : 1\nList : 2\nHealth : true\n"; text != want || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	for _, bad := range []string{"", "{", `{"a":1}x`, strings.Repeat("[", 100), `{"a":[1}`} {
		if text, err := queryText([]byte(bad)); err == nil {
			t.Errorf("%q was read as %q", bad, text)
		}
	}
}

func FuzzQueryText(f *testing.F) {
	f.Add(`{"DEV ID 0":{"Bus":"11","Health":"True"}}`)
	f.Add(`[{"DEV ID":3,"a":{"b":[1,{"c":null}]}}]`)
	f.Fuzz(func(t *testing.T, text string) {
		out, err := queryText([]byte(text))
		if err != nil {
			return
		}
		for line := range strings.Lines(out) {
			if !strings.HasPrefix(line, deviceHeading) && !strings.Contains(line, " : ") {
				t.Errorf("line %q", line)
			}
		}
		_, _ = efsmi.ParseQuery(out) // does not panic
	})
}
