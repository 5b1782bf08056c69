// Package eflibtest holds the suite that every back end of eflib passes. A back end of another module
// can run it too.
package eflibtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// Backend is what the suite asks for: an inventory that also knows its host.
type Backend interface {
	eflib.Inventory
	Host(ctx context.Context) (eflib.Host, error)
}

// TestInventory runs the suite. open returns a back end that shows the machine as it is at that moment.
func TestInventory(t *testing.T, open func(t *testing.T, m sim.Machine) Backend) {
	for _, name := range sim.Presets() {
		t.Run("reads "+name, func(t *testing.T) {
			t.Parallel()
			m := preset(t, name)
			slices.Reverse(m.Cards) // the order of the host must not show
			readsMachine(t, open(t, m), m)
		})
	}
	t.Run("one odd card hides no other", func(t *testing.T) {
		t.Parallel()
		for broken := range 8 {
			m := preset(t, "s60x8")
			m.Break(broken)
			devices, err := open(t, m).Devices(t.Context())
			odd, all := eflib.DeviceErrors(err)
			if len(odd) != 1 || !all || odd[0].Entry != m.Cards[broken].PCIAddress.String() {
				t.Errorf("card %d is broken: error %v", broken, err)
			}
			if got := minors(devices); got != topology.SetOf(0, 1, 2, 3, 4, 5, 6, 7).Without(broken) {
				t.Errorf("card %d is broken: got %v", broken, got)
			}
		}
	})
	t.Run("a removed card is gone without an error", func(t *testing.T) {
		t.Parallel()
		m := preset(t, "s60x8")
		m.Remove(3)
		devices, err := open(t, m).Devices(t.Context())
		if got := minors(devices); err != nil || got != topology.SetOf(0, 1, 2, 4, 5, 6, 7) {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("a machine without cards", func(t *testing.T) {
		t.Parallel()
		m := preset(t, "mixed")
		m.Cards = nil
		if devices, err := open(t, m).Devices(t.Context()); len(devices) != 0 || err != nil {
			t.Errorf("got %v, %v", devices, err)
		}
	})
	t.Run("no driver", func(t *testing.T) {
		t.Parallel()
		m := preset(t, "mixed")
		m.DriverVersion = ""
		b := open(t, m)
		if devices, err := b.Devices(t.Context()); devices != nil || !errors.Is(err, eflib.ErrDriverNotLoaded) {
			t.Errorf("devices: got %v, %v", devices, err)
		}
		if _, err := b.Host(t.Context()); !errors.Is(err, eflib.ErrDriverNotLoaded) {
			t.Errorf("host: got %v", err)
		}
	})
	t.Run("a context that has ended", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if devices, err := open(t, preset(t, "mixed")).Devices(ctx); devices != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, %v", devices, err)
		}
	})
}

// readsMachine checks everything a back end can know; uuid, serial number and health depend on it.
func readsMachine(t *testing.T, b Backend, m sim.Machine) {
	t.Helper()
	devices, err := b.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(m.Cards)
	slices.SortFunc(want, func(a, b eflib.Device) int { return a.Minor - b.Minor })
	perBackend := cmpopts.IgnoreFields(eflib.Device{}, "UUID", "SerialNumber", "Health")
	if diff := cmp.Diff(want, devices, perBackend); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	for _, d := range devices {
		if !strings.HasPrefix(d.UUID, contract.UUIDPrefix) || len(d.UUID) == len(contract.UUIDPrefix) {
			t.Errorf("card %d: uuid %q", d.Minor, d.UUID)
		}
	}
	// The announcement refuses what two cards cannot share, such as a uuid.
	text, err := contract.EncodeDevices(eflib.NodeDevices(devices, 1024, contract.DefaultSliceCount))
	if err != nil {
		t.Fatal(err)
	}
	if read, err := contract.DecodeDevices(text); err != nil || len(read.Devices) != len(m.Cards) {
		t.Errorf("announcement %s: %v", text, err)
	}
	again, err := b.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again[0].Bridges[0] = "changed by the caller"
	if third, err := b.Devices(t.Context()); err != nil || !cmp.Equal(devices, third) {
		t.Errorf("a later call sees what a caller did to its result (%v)", err)
	}
	host, err := b.Host(t.Context())
	if want := (eflib.Host{DriverVersion: m.DriverVersion, Product: m.Product}); err != nil || host != want {
		t.Errorf("host: got %+v, %v, want %+v", host, err, want)
	}
}

func preset(t *testing.T, name string) sim.Machine {
	t.Helper()
	m, err := sim.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func minors(devices []eflib.Device) topology.Set {
	var s topology.Set
	for _, d := range devices {
		s = s.With(d.Minor)
	}
	return s
}
