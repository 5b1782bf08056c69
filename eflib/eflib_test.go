package eflib_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

func TestModelFacts(t *testing.T) {
	t.Parallel()
	// All that is published about each device id. Empty means not known, and has to stay so until it is.
	for id, want := range map[uint16]eflib.Model{
		0x0001: {Name: "T10", Family: "LEO", MemoryMiB: 16384},
		0x0002: {Name: "T11"},
		0x0003: {Name: "T10", Family: "LEO", MemoryMiB: 16384},
		0x0021: {Name: "T20", MemoryMiB: 32 * 1024},
		0x0022: {Name: "T20", MemoryMiB: 64 * 1024},
		0x0023: {Name: "T21", MemoryMiB: 32 * 1024},
		0x0024: {Name: "T21", MemoryMiB: 64 * 1024},
		0x8001: {Name: "I20"},
		0x8011: {Name: "I10"},
		0x8012: {Name: "I10L"},
		0x8031: {Name: "S6"},
		0x8032: {Name: "S6"},
		0xc031: {Name: "S30"},
		0xc032: {Name: "S90"},
		0xc033: {Name: "S60G"},
		0xc035: {Name: "S60", Product: "scorpio", Family: "SCORPIO", MemoryMiB: 42976},
		0xc041: {Name: "L300", MemoryMiB: 147456},
		0xc042: {Name: "L600"},
	} {
		if got, ok := eflib.ModelOf(id); !ok || got != want {
			t.Errorf("device id %04x: got %+v, want %+v", id, got, want)
		}
	}
	if m, ok := eflib.ModelOf(0xffff); ok || m != (eflib.Model{}) {
		t.Errorf("an id that is not in the table: %+v, %t", m, ok)
	}
}

func TestHealthProblem(t *testing.T) {
	t.Parallel()
	for want, h := range map[string]eflib.Health{
		"":                {State: eflib.Healthy, Cause: "ignored"},
		"health unknown":  {},
		"unhealthy":       {State: eflib.Unhealthy},
		"ECC":             {State: eflib.Unhealthy, Cause: "ECC"},
		"does not answer": {State: eflib.HealthUnknown, Cause: "does not answer"},
	} {
		if got := h.Problem(); got != want {
			t.Errorf("%+v: got %q, want %q", h, got, want)
		}
	}
}

func TestNodeDevices(t *testing.T) {
	t.Parallel()
	devices := []eflib.Device{
		{Minor: 2, UUID: "GCU-C", MemoryMiB: 1, NUMA: -1},
		{Minor: 3, UUID: "GCU-D", Model: "S90"},
		{Minor: 4, MemoryMiB: 1},
		{
			Minor: 0, UUID: "GCU-A", Model: "S60", MemoryMiB: 42976, NUMA: 1, PCIAddress: topology.Address{Bus: 0x11},
			Bridges: []string{"pci0000:0c"}, Health: eflib.Health{State: eflib.Healthy},
		},
	}
	want := contract.NodeDevices{Version: "v1", MemoryUnitMiB: 1024, SliceCount: 6, Devices: []contract.NodeDevice{
		{Minor: 0, UUID: "GCU-A", Model: "S60", MemoryMiB: 42976, PCIBusID: "0000:11:00.0", Bridges: []string{"pci0000:0c"}, NUMA: 1},
		{Minor: 2, UUID: "GCU-C", MemoryMiB: 1, PCIBusID: "0000:00:00.0", NUMA: -1, Health: "health unknown"},
	}}
	if diff := cmp.Diff(want, eflib.NodeDevices(devices, 1024, 6)); diff != "" {
		t.Errorf("announcement (-want +got):\n%s", diff)
	}
	if devices[0].Minor != 2 {
		t.Error("the caller's devices were sorted")
	}
	if text, err := contract.EncodeDevices(eflib.NodeDevices(nil, 1024, 6)); err != nil {
		t.Errorf("a node without cards: %s, %v", text, err)
	}
}

func TestDeviceErrors(t *testing.T) {
	t.Parallel()
	a := &eflib.DeviceError{Entry: "a", Err: eflib.ErrNotBound}
	b := &eflib.DeviceError{Entry: "b", Err: eflib.ErrUnknownModel}
	other := errors.New("the listing broke off")
	for name, tt := range map[string]struct {
		err  error
		want []*eflib.DeviceError
		all  bool
	}{
		"no error":                  {nil, nil, true},
		"one":                       {a, []*eflib.DeviceError{a}, true},
		"joined":                    {errors.Join(a, b), []*eflib.DeviceError{a, b}, true},
		"wrapped":                   {fmt.Errorf("node: %w", errors.Join(a, fmt.Errorf("again: %w", b))), []*eflib.DeviceError{a, b}, true},
		"with something else":       {errors.Join(a, other), []*eflib.DeviceError{a}, false},
		"something else altogether": {other, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, all := eflib.DeviceErrors(tt.err)
			if all != tt.all || !cmp.Equal(got, tt.want, cmp.Comparer(func(x, y *eflib.DeviceError) bool { return x == y })) {
				t.Errorf("got %v, %t", got, all)
			}
		})
	}
	if !errors.Is(errors.Join(a, b), eflib.ErrUnknownModel) || a.Error() != "device a: no driver is bound to the card" {
		t.Errorf("got %v", a)
	}
}

// What a card tells of itself, apart from what is made for a card that tells nothing.
func TestOwnUUID(t *testing.T) {
	t.Parallel()
	at, err := topology.ParseAddress("0000:11:00.0")
	if err != nil {
		t.Fatal(err)
	}
	if got := eflib.AddressUUID(at); got != "GCU-PCI-0000:11:00.0" {
		t.Errorf("made of an address: %s", got)
	}
	for uuid, want := range map[string]bool{"GCU-U53000080105": true, "GCU-PCIE1": true, "": false, eflib.AddressUUID(at): false} {
		if got := eflib.OwnUUID(uuid); got != want {
			t.Errorf("%q: %t, want %t", uuid, got, want)
		}
	}
}
