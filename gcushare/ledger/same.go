package ledger

import (
	"slices"

	"github.com/topscloud/topscloud/internal/contract"
)

// sameCapacity compares what two readings of a Node object say. A tree is the same when it came from
// the same text.
func sameCapacity(a, b *Capacity) bool {
	return a.devices == b.devices && a.UnitMiB == b.UnitMiB && a.SliceCount == b.SliceCount && a.Sharing == b.Sharing &&
		a.Closed == b.Closed && a.Problem == b.Problem && a.Allocatable == b.Allocatable && a.MemoryMiB == b.MemoryMiB &&
		slices.Equal(a.Cards, b.Cards)
}

func sameHolder(a, b *Holder) bool {
	return a.State == b.State && a.Node == b.Node && a.Initialized == b.Initialized && a.Problem == b.Problem &&
		a.Overdue == b.Overdue && a.Totals == b.Totals && a.Priority == b.Priority &&
		slices.EqualFunc(a.Containers, b.Containers, func(x, y contract.ContainerAllocation) bool {
			return x.Name == y.Name && slices.Equal(x.Cards, y.Cards)
		})
}
