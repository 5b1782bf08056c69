package simnode

import (
	"context"
	"fmt"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/internal/contract"
)

// What a made-up node is set to.
const (
	memoryUnitMiB = 1024
	hostCPUs      = 96
	hostMemoryGiB = 768
)

// PresetNames lists what --machine accepts.
func PresetNames() []string { return sim.Presets() }

// presetHardware describes a preset as discovery would on that node.
func presetHardware(preset, node string) (Hardware, error) {
	m, err := sim.Preset(preset)
	if err != nil {
		return Hardware{}, err
	}
	m = m.ForNode(node)
	devices, err := m.Devices(context.Background())
	if err != nil {
		return Hardware{}, fmt.Errorf("machine preset %q: %w", preset, err)
	}
	hw := Hardware{
		Devices: eflib.NodeDevices(devices, memoryUnitMiB, contract.DefaultSliceCount),
		Host:    m.Product, Driver: m.DriverVersion, CPUs: hostCPUs, MemoryGiB: hostMemoryGiB,
	}
	for i, d := range devices {
		// Labels describe the node, so what its cards do not share is left out.
		if i == 0 {
			hw.Family, hw.Product = d.Family, d.Product
		}
		if d.Family != hw.Family {
			hw.Family = ""
		}
		if d.Product != hw.Product {
			hw.Product = ""
		}
	}
	return hw, nil
}
