package simnode

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/topscloud/topscloud/internal/contract"
)

type preset struct {
	model, family, product, host, driver string
	cards, perSwitch                     int
	memoryMiB                            int64
}

func presets() map[string]preset {
	return map[string]preset{
		"t10x8":     {"T10", "LEO", "", "NF5468M5", "1.0.1.2", 8, 4, 16384},
		"t20x4":     {"T20", "", "", "NF5468M6", "1.0.1.2", 4, 2, 32768},
		"s60x8":     {"S60", "SCORPIO", "scorpio", "R5500 G6", "1.8.7", 8, 2, 42976},
		"s60x8-2sw": {"S60", "SCORPIO", "scorpio", "R5500 G6", "1.8.7", 8, 4, 42976},
		"l300x8":    {"L300", "", "", "R5500 G7", "1.8.7", 8, 4, 147456},
	}
}

// PresetNames lists what --machine accepts, sorted.
func PresetNames() []string { return slices.Sorted(maps.Keys(presets())) }

func presetHardware(name, node string) (Hardware, error) {
	p, ok := presets()[name]
	if !ok {
		return Hardware{}, fmt.Errorf("unknown preset %q; there are %s", name, strings.Join(PresetNames(), ", "))
	}
	hw := Hardware{
		Devices: contract.NodeDevices{MemoryUnitMiB: 1024, SliceCount: contract.DefaultSliceCount},
		Host:    p.host, Driver: p.driver, Family: p.family, Product: p.product, CPUs: 96, MemoryGiB: 768,
	}
	for minor := range p.cards {
		numa := minor * 2 / p.cards
		root := fmt.Sprintf("pci0000:%02x", 0x0c+numa*0x8b)
		sw := 0x10 + minor/p.perSwitch*0x10
		hw.Devices.Devices = append(hw.Devices.Devices, contract.NodeDevice{
			Minor: minor, UUID: fmt.Sprintf("%s%s-%d", contract.UUIDPrefix, node, minor), Model: p.model, MemoryMiB: p.memoryMiB,
			PCIBusID: fmt.Sprintf("0000:%02x:00.0", sw+2+minor%p.perSwitch),
			Bridges:  []string{fmt.Sprintf("0000:%02x:%02x.0", sw+1, minor%p.perSwitch), fmt.Sprintf("0000:%02x:00.0", sw), root},
			NUMA:     numa,
		})
	}
	return hw, nil
}
