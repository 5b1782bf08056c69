package sim

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/topology"
)

// preset is a machine as data: the paths of its cards below sys/devices, by minor.
type preset struct {
	name    string
	product string
	driver  string
	cards   []slot
}

type slot struct {
	deviceID uint16
	numa     int
	path     string
}

// PCI device ids of the models in presets.
const (
	idT10  = 0x0001
	idT20  = 0x0021
	idS60  = 0xc035
	idL300 = 0xc041
)

// presets returns all presets, in the order in which they are listed to users.
func presets() []preset {
	return []preset{
		{"t10x8", "NF5468M5", "1.0.1.2", slices.Concat(
			slots(idT10, 0, rootPorts(0x3c, 4)), slots(idT10, 1, rootPorts(0xb0, 4)))},
		{"s60x8", "NF5468M5", "1.8.7", slices.Concat(
			slots(idS60, 0, vendorHalf(0x0c)), slots(idS60, 1, vendorHalf(0x97)))},
		{"s60x8-2sw", "Simulated Server", "1.8.7", slices.Concat(
			slots(idS60, 0, oneSwitch(0x10, 4)), slots(idS60, 1, oneSwitch(0x90, 4)))},
		{"t20x4", "Simulated Server", "1.8.7", slices.Concat(
			slots(idT20, 0, oneSwitch(0x20, 2)), slots(idT20, 1, oneSwitch(0xa0, 2)))},
		{"l300x8", "Simulated Server", "1.8.7", slices.Concat(
			slots(idL300, 0, oneSwitch(0x10, 2)), slots(idL300, 0, oneSwitch(0x40, 2)),
			slots(idL300, 1, oneSwitch(0x90, 2)), slots(idL300, 1, oneSwitch(0xc0, 2)))},
		{"mixed", "Simulated Server", "1.8.7", slices.Concat(
			slots(idS60, 0, oneSwitch(0x10, 2)), slots(idT20, 1, oneSwitch(0x90, 2)))},
		{"no-numa", "Simulated Server", "1.8.7", slots(idS60, -1, []string{
			"pci0002:00/0002:00:01.0", "pci0002:00/0002:00:09.0",
			"pci0003:00/0003:00:01.0", "pci0003:00/0003:00:09.0"})},
	}
}

// Presets returns the names Preset takes.
func Presets() []string {
	var names []string
	for _, p := range presets() {
		names = append(names, p.name)
	}
	return names
}

// Preset returns a machine by name. Its uuids are those of a node called like the preset.
func Preset(name string) (Machine, error) {
	for _, p := range presets() {
		if p.name == name {
			return p.machine().ForNode(name), nil
		}
	}
	return Machine{}, fmt.Errorf("machine preset %q: want one of %s", name, strings.Join(Presets(), ", "))
}

func (p preset) machine() Machine {
	m := Machine{Name: p.name, Product: p.product, DriverVersion: p.driver}
	for minor, s := range p.cards {
		model, _ := eflib.ModelOf(s.deviceID)
		parts := strings.Split(s.path, "/")
		slices.Reverse(parts)
		address, err := topology.ParseAddress(path.Base(s.path))
		if err != nil {
			panic(err) // the tables of this file are wrong
		}
		m.Cards = append(m.Cards, eflib.Device{
			Minor: minor, Model: model.Name, Product: model.Product, Family: model.Family,
			VendorID: eflib.VendorID, DeviceID: s.deviceID, MemoryMiB: model.MemoryMiB,
			PCIAddress: address, Bridges: parts[1:], NUMA: s.numa,
			Node: eflib.NodePath(minor), Major: simMajor, DevMinor: uint32(minor),
			Health: eflib.Health{State: eflib.Healthy},
		})
	}
	return m
}

// simMajor is a major number from the range for local and experimental use.
const simMajor = 240

func slots(deviceID uint16, numa int, paths []string) []slot {
	var list []slot
	for _, p := range paths {
		list = append(list, slot{deviceID, numa, p})
	}
	return list
}

// rootPorts is a root complex with each card on a port of its own.
func rootPorts(bus, cards int) []string {
	var paths []string
	for i := range cards {
		paths = append(paths, fmt.Sprintf("pci0000:%02x/0000:%02x:%02x.0/0000:%02x:00.0", bus, bus, i, bus+1+i))
	}
	return paths
}

// oneSwitch is a root complex with one switch and each card on a port of that switch.
func oneSwitch(bus, cards int) []string {
	var paths []string
	for i := range cards {
		paths = append(paths, fmt.Sprintf("pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/0000:%02x:%02x.0/0000:%02x:00.0",
			bus, bus, bus+1, bus+2, i, bus+3+i))
	}
	return paths
}

// vendorHalf is half of the vendor's example. For bus 0c: a switch on buses 0d and 0e whose three used
// ports lead to a switch each; the first (0f, 10) has cards at 11 and 12, the others have one card
// each, at 15 and 19. The other half mirrors it from bus 97.
func vendorHalf(bus int) []string {
	top := fmt.Sprintf("pci0000:%02x/0000:%02x:02.0/0000:%02x:00.0", bus, bus, bus+1)
	below := func(port, first, innerPort, card int) string {
		return fmt.Sprintf("%s/0000:%02x:%02x.0/0000:%02x:00.0/0000:%02x:%02x.0/0000:%02x:00.0",
			top, bus+2, port, bus+first, bus+first+1, innerPort, bus+card)
	}
	return []string{below(0, 3, 0, 5), below(0, 3, 4, 6), below(4, 7, 0, 9), below(8, 11, 0, 13)}
}
