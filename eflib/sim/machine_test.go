package sim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/eflib/eflibtest"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/topology"
)

func TestConformance(t *testing.T) {
	eflibtest.TestInventory(t, func(_ *testing.T, m sim.Machine) eflibtest.Backend { return &m })
}

func preset(t *testing.T, name string) sim.Machine {
	t.Helper()
	m, err := sim.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestPresets(t *testing.T) {
	t.Parallel()
	const s, r, n, a = topology.SameSwitch, topology.SameRootComplex, topology.SameNUMA, topology.Across
	for name, want := range map[string]struct {
		models []string
		memory []int64
		levels []topology.Level // of card 0 to cards 1, 2, ...
	}{
		"t10x8":     {[]string{"T10", "T10", "T10", "T10", "T10", "T10", "T10", "T10"}, []int64{16384}, []topology.Level{r, r, r, a, a, a, a}},
		"s60x8":     {[]string{"S60", "S60", "S60", "S60", "S60", "S60", "S60", "S60"}, []int64{42976}, []topology.Level{s, s, s, a, a, a, a}},
		"s60x8-2sw": {[]string{"S60", "S60", "S60", "S60", "S60", "S60", "S60", "S60"}, []int64{42976}, []topology.Level{s, s, s, a, a, a, a}},
		"t20x4":     {[]string{"T20", "T20", "T20", "T20"}, []int64{32768}, []topology.Level{s, a, a}},
		"l300x8":    {[]string{"L300", "L300", "L300", "L300", "L300", "L300", "L300", "L300"}, []int64{147456}, []topology.Level{s, n, n, a, a, a, a}},
		"mixed":     {[]string{"S60", "S60", "T20", "T20"}, []int64{42976, 42976, 32768, 32768}, []topology.Level{s, a, a}},
		"no-numa":   {[]string{"S60", "S60", "S60", "S60"}, []int64{42976}, []topology.Level{r, a, a}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := preset(t, name)
			tree, err := m.Topology()
			if err != nil {
				t.Fatal(err)
			}
			var models []string
			var levels []topology.Level
			for i, c := range m.Cards {
				models = append(models, c.Model)
				if i > 0 {
					levels = append(levels, tree.Level(0, i))
				}
				if memory := want.memory[i%len(want.memory)]; c.MemoryMiB != memory {
					t.Errorf("card %d: %d MiB, want %d", i, c.MemoryMiB, memory)
				}
			}
			if diff := cmp.Diff(want.models, models) + cmp.Diff(want.levels, levels); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if len(sim.Presets()) != 7 {
		t.Errorf("presets %v", sim.Presets())
	}
	if _, err := sim.Preset("s60"); err == nil || !strings.Contains(err.Error(), strings.Join(sim.Presets(), ", ")) {
		t.Errorf("the error does not list the names: %v", err)
	}
}

// The vendor's example: a two-card pod gets the pair on the inner switch, the next one its mirror.
func TestVendorTree(t *testing.T) {
	t.Parallel()
	m := preset(t, "s60x8")
	tree, err := m.Topology()
	if err != nil {
		t.Fatal(err)
	}
	free := tree.Cards()
	for _, want := range []topology.Set{topology.SetOf(0, 1), topology.SetOf(4, 5)} {
		got, ok := tree.Best(topology.Query{From: free, Free: free, Count: 2})
		if !ok || got.Cards != want {
			t.Fatalf("from %v got %v, want %v", free, got.Cards, want)
		}
		free = free.Minus(want)
	}
	var buses []string
	for _, c := range m.Cards {
		buses = append(buses, c.PCIAddress.String())
	}
	want := []string{
		"0000:11:00.0", "0000:12:00.0", "0000:15:00.0", "0000:19:00.0",
		"0000:9c:00.0", "0000:9d:00.0", "0000:a0:00.0", "0000:a4:00.0",
	}
	chain := []string{"0000:10:04.0", "0000:0f:00.0", "0000:0e:00.0", "0000:0d:00.0", "0000:0c:02.0", "pci0000:0c"}
	if diff := cmp.Diff(want, buses) + cmp.Diff(chain, m.Cards[1].Bridges); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestForNode(t *testing.T) {
	t.Parallel()
	m := preset(t, "mixed")
	seen := map[string]string{}
	for _, node := range []string{"a", "b", "a-1", "mixed"} {
		for _, c := range m.ForNode(node).Cards {
			if other := seen[c.UUID]; other != "" {
				t.Errorf("%s of %s is also on %s", c.UUID, node, other)
			}
			seen[c.UUID] = node
		}
	}
	if !cmp.Equal(m.ForNode("a").Cards, m.ForNode("a").Cards) {
		t.Error("one name gives two machines")
	}
	if got := m.ForNode("a").Cards[0].UUID; got != "GCU-SD7E989670500" {
		t.Errorf("uuid %s: the uuids of a named node have changed", got)
	}
	n := m.ForNode("a")
	n.Cards[0].Bridges[0] = "changed"
	n.Break(1)
	if m.Cards[0].Bridges[0] == "changed" {
		t.Error("a node shares memory with its preset")
	}
	if _, err := m.Devices(t.Context()); err != nil {
		t.Errorf("a node shares faults with its preset: %v", err)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	m := preset(t, "t20x4")
	if m.SetHealth(9, "gone") || m.Remove(9) || m.Break(9) {
		t.Error("a card that is not there was changed")
	}
	m.SetHealth(1, "double-bit ECC error")
	m.SetHealth(2, "too hot")
	m.SetHealth(2, "")
	devices, err := m.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var problems []string
	for _, d := range devices {
		problems = append(problems, d.Health.Problem())
	}
	if diff := cmp.Diff([]string{"", "double-bit ECC error", "", ""}, problems); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	card := m.Cards[0]
	if !m.Remove(0) {
		t.Error("card 0 was not there")
	}
	m.Cards = append(m.Cards, card)
	if again, err := m.Devices(t.Context()); err != nil || !cmp.Equal(again, devices) {
		t.Errorf("a card that was put back: %v, %v", again, err)
	}
}

func TestWriteSysfsLeavesARealTreeAlone(t *testing.T) {
	t.Parallel()
	m := preset(t, "mixed")
	for name, place := range map[string]func(sys string) error{
		"a folder":         func(sys string) error { return os.Mkdir(sys, 0o755) },
		"a file":           func(sys string) error { return os.WriteFile(sys, nil, 0o644) },
		"a link elsewhere": func(sys string) error { return os.Symlink("elsewhere", sys) },
	} {
		root := t.TempDir()
		if err := place(filepath.Join(root, "sys")); err != nil {
			t.Fatal(err)
		}
		if err := m.WriteSysfs(root); err == nil {
			t.Errorf("%s was replaced", name)
		}
		if entries, err := os.ReadDir(root); err != nil || len(entries) != 1 {
			t.Errorf("%s: left behind %v, %v", name, entries, err)
		}
	}
}
