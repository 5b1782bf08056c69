package ledger

import (
	"slices"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// sameCapacity compares what two readings of a Node object say. Trees are compared by their cards'
// pairwise distances' source, the annotation, which SetCapacity callers read anew only when it changed.
func sameCapacity(a, b *Capacity) bool {
	return a.Tree == b.Tree && a.UnitMiB == b.UnitMiB && a.SliceCount == b.SliceCount && a.Sharing == b.Sharing &&
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

// absent is the capacity of a node whose Node object is not there.
func absent(node string) *Capacity {
	tree, _ := topology.New(nil)
	return &Capacity{Node: node, Tree: tree, Closed: placement.NoGCU}
}
