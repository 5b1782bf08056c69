package contract_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/internal/contract"
)

var update = flag.Bool("update", false, "write the golden files of the formats' present versions")

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// goldens returns, by file, the value that this release writes there.
func goldens() (contract.Allocation, contract.NodeDevices, contract.Cordon) {
	until := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return contract.Allocation{Version: contract.AllocationVersion, Node: "node-1", Containers: []contract.ContainerAllocation{
			{Name: "init", Cards: []contract.CardAllocation{{Minor: 2, UUID: "GCU-c", MemoryMiB: 16384, Whole: true}}},
			{Name: "train", Cards: []contract.CardAllocation{{Minor: 0, UUID: "GCU-a", MemoryMiB: 8192}, {Minor: 1, UUID: "GCU-b", MemoryMiB: 8192}}},
		}}, contract.NodeDevices{Version: contract.DevicesVersion, MemoryUnitMiB: 1024, SliceCount: 6, Devices: []contract.NodeDevice{
			{Minor: 0, UUID: "GCU-a", Model: "S60", MemoryMiB: 42976, PCIBusID: "0000:11:00.0", Bridges: []string{"0000:10:00.0", "pci0000:0c"}, NUMA: 0},
			{Minor: 3, UUID: "GCU-d", Model: "T10", MemoryMiB: 16384, PCIBusID: "0000:19:00.0", NUMA: -1, Health: "double-bit ECC"},
		}}, contract.Cordon{Version: contract.CordonVersion, Cards: []contract.CordonedCard{
			{Minor: 1, Reason: "fan", Until: &until}, {Minor: 4},
		}}
}

// TestGolden keeps what each version of the formats looks like: this release writes exactly the files of
// its versions, and reads them and all older ones that it promises to read.
func TestGolden(t *testing.T) {
	allocation, devices, cordon := goldens()
	golden := func(file, text string) string {
		path := filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(b); got != text+"\n" {
			t.Errorf("%s is\n%s\nthis release writes\n%s", path, got, text)
		}
		return string(b)
	}
	a := golden("allocation-v1.json", must[string](t)(contract.EncodeAllocation(allocation)))
	d := golden("devices-v1.json", must[string](t)(contract.EncodeDevices(devices)))
	c := golden("cordon-v1.json", must[string](t)(contract.EncodeCordon(cordon)))
	for _, diff := range []string{
		cmp.Diff(&allocation, must[*contract.Allocation](t)(contract.DecodeAllocation(a))),
		cmp.Diff(&devices, must[*contract.NodeDevices](t)(contract.DecodeDevices(d))),
		cmp.Diff(&cordon, must[*contract.Cordon](t)(contract.DecodeCordon(c))),
	} {
		if diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	allocation := func(text string) error { _, err := contract.DecodeAllocation(text); return err }
	devices := func(text string) error { _, err := contract.DecodeDevices(text); return err }
	cordon := func(text string) error { _, err := contract.DecodeCordon(text); return err }
	card := func(fields string) string {
		return `{"version":"v1","node":"n","containers":[{"name":"a","cards":[{` + fields + `}]}]}`
	}
	device := func(fields string) string {
		return `{"version":"v1","memoryUnitMiB":1024,"sliceCount":6,"devices":[` + fields + `]}`
	}
	tests := map[string]struct {
		decode func(string) error
		text   string
	}{
		"record: empty":                {allocation, ""},
		"record: cut short":            {allocation, `{"version":"v1","node":"n","conta`},
		"record: newer version":        {allocation, `{"version":"v2","node":"n"}`},
		"record: no version":           {allocation, `{"node":"n","containers":[]}`},
		"record: unknown field":        {allocation, card(`"minor":0,"uuid":"u","memoryMiB":1,"colour":"red"`)},
		"record: text behind":          {allocation, card(`"minor":0,"uuid":"u","memoryMiB":1`) + "x"},
		"record: minor as text":        {allocation, card(`"minor":"0,","uuid":"u","memoryMiB":1`)},
		"record: minor too large":      {allocation, card(`"minor":128,"uuid":"u","memoryMiB":1`)},
		"record: size in words":        {allocation, card(`"minor":0,"uuid":"u","memoryMiB":"twelve"`)},
		"record: negative size":        {allocation, card(`"minor":0,"uuid":"u","memoryMiB":-12`)},
		"record: size past all bounds": {allocation, card(`"minor":0,"uuid":"u","memoryMiB":99999999999999999999`)},
		"record: no uuid":              {allocation, card(`"minor":0,"memoryMiB":1`)},
		"record: a card twice":         {allocation, card(`"minor":0,"uuid":"u","memoryMiB":1},{"minor":0,"uuid":"u","memoryMiB":1`)},
		"record: no containers":        {allocation, `{"version":"v1","node":"n","containers":[]}`},
		"record: no node":              {allocation, `{"version":"v1","containers":[{"name":"a","cards":[{"minor":0,"uuid":"u","memoryMiB":1}]}]}`},
		"devices: no unit":             {devices, `{"version":"v1","sliceCount":6,"devices":[]}`},
		"devices: no slices":           {devices, `{"version":"v1","memoryUnitMiB":1,"devices":[]}`},
		"devices: not sorted":          {devices, device(`{"minor":1,"uuid":"a","memoryMiB":1},{"minor":0,"uuid":"b","memoryMiB":1}`)},
		"devices: a uuid twice":        {devices, device(`{"minor":0,"uuid":"a","memoryMiB":1},{"minor":1,"uuid":"a","memoryMiB":1}`)},
		"devices: memory too large":    {devices, device(`{"minor":0,"uuid":"a","memoryMiB":1073741825}`)},
		"cordon: a card twice":         {cordon, `{"version":"v1","cards":[{"minor":0},{"minor":0}]}`},
		"cordon: newer version":        {cordon, `{"version":"v7","cards":[]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := test.decode(test.text); err == nil {
				t.Error("it was read")
			}
		})
	}
}

func FuzzDecodeAllocation(f *testing.F) {
	allocation, _, _ := goldens()
	f.Add(must[string](f)(contract.EncodeAllocation(allocation)))
	f.Add(`{"version":"v1","node":"n","containers":[{"name":"a","cards":[{"minor":0,"uuid":"u","memoryMiB":1}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		a, err := contract.DecodeAllocation(text)
		if err != nil {
			return
		}
		again, err := contract.EncodeAllocation(*a)
		if err != nil {
			if len(text) < contract.MaxAllocationBytes/6 { // a character may take six in canonical text
				t.Fatalf("read but not written: %v", err)
			}
			return
		}
		if diff := cmp.Diff(a, must[*contract.Allocation](t)(contract.DecodeAllocation(again))); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	})
}

func FuzzDecodeDevices(f *testing.F) {
	_, devices, _ := goldens()
	f.Add(must[string](f)(contract.EncodeDevices(devices)))
	f.Fuzz(func(t *testing.T, text string) {
		d, err := contract.DecodeDevices(text)
		if err != nil {
			return
		}
		canonical := must[string](t)(contract.EncodeDevices(*d))
		again := must[*contract.NodeDevices](t)(contract.DecodeDevices(canonical))
		if twice := must[string](t)(contract.EncodeDevices(*again)); twice != canonical {
			t.Errorf("%s\nbecomes\n%s", canonical, twice)
		}
	})
}

func FuzzDecodeCordon(f *testing.F) {
	_, _, cordon := goldens()
	f.Add(must[string](f)(contract.EncodeCordon(cordon)))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := contract.DecodeCordon(text)
		if err != nil {
			return
		}
		canonical, err := contract.EncodeCordon(*c)
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		if twice := must[string](t)(contract.EncodeCordon(*must[*contract.Cordon](t)(contract.DecodeCordon(canonical)))); twice != canonical {
			t.Errorf("%s\nbecomes\n%s", canonical, twice)
		}
	})
}
