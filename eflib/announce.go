package eflib

import (
	"slices"

	"github.com/topscloud/topscloud/internal/contract"
)

// NodeDevices returns the announcement of a node with these devices, sorted by minor. A device without
// uuid or memory is left out, because a reader would refuse the whole announcement; the inventory has
// named it in its error already. A card that is not healthy is in it, with its problem.
func NodeDevices(devices []Device, memoryUnitMiB, sliceCount int64) contract.NodeDevices {
	announced := contract.NodeDevices{
		Version: contract.DevicesVersion, MemoryUnitMiB: memoryUnitMiB, SliceCount: sliceCount,
		Devices: make([]contract.NodeDevice, 0, len(devices)),
	}
	for _, d := range devices {
		if d.UUID == "" || d.MemoryMiB < 1 {
			continue
		}
		announced.Devices = append(announced.Devices, contract.NodeDevice{
			Minor: d.Minor, UUID: d.UUID, Model: d.Model, MemoryMiB: d.MemoryMiB,
			PCIBusID: d.PCIAddress.String(), Bridges: slices.Clone(d.Bridges), NUMA: d.NUMA,
			Health: d.Health.Problem(),
		})
	}
	slices.SortFunc(announced.Devices, func(a, b contract.NodeDevice) int { return a.Minor - b.Minor })
	return announced
}
