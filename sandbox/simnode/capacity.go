package simnode

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// units are amounts of the three GCU resources.
type units struct{ whole, memory, slices int64 }

// card is the state of one card.
type card struct {
	contract.NodeDevice
	freeMiB int64
	// whole says that a container holds the card alone, holders that at least one container has a share.
	whole, holders bool
}

// nodeCards computes what is free.
type nodeCards struct {
	unitMiB, sliceCount int64
	cards               []card
	sharing             bool
}

// newNodeCards charges the pods of a node to its cards: recorded ones as recorded, then the others
// where most room is.
func newNodeCards(d contract.NodeDevices, names *contract.Names, sharing bool, pods []*corev1.Pod) *nodeCards {
	n := &nodeCards{unitMiB: d.MemoryUnitMiB, sliceCount: d.SliceCount, sharing: sharing}
	for _, dev := range d.Devices {
		n.cards = append(n.cards, card{NodeDevice: dev, freeMiB: dev.MemoryMiB})
	}
	var unrecorded []*corev1.Pod
	for _, p := range pods {
		if record, err := contract.DecodeAllocation(p.Annotations[names.AllocationKey]); err == nil {
			n.chargeRecord(p, record)
		} else {
			unrecorded = append(unrecorded, p)
		}
	}
	slices.SortFunc(unrecorded, byAge)
	for _, p := range unrecorded {
		n.chargeGuess(podUnits(p, names))
	}
	return n
}

func byAge(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
}

// chargeRecord charges each card what the pod holds of it from now on.
func (n *nodeCards) chargeRecord(p *corev1.Pod, record *contract.Allocation) {
	charges := share.Charges(holds(p, record), initialized(p))
	for i := range n.cards {
		c := &n.cards[i]
		for _, held := range charges {
			if held.Minor != c.Minor {
				continue
			}
			c.holders = true
			c.whole = c.whole || held.Whole
			c.freeMiB = max(0, share.Sub(c.freeMiB, held.MiB))
		}
	}
}

// holds lists what the record gives the pod's containers, in start order.
func holds(p *corev1.Pod, record *contract.Allocation) []share.Hold {
	var out []share.Hold
	add := func(name string, phase share.Phase) {
		for _, c := range record.Containers {
			if c.Name != name {
				continue
			}
			for _, card := range c.Cards {
				out = append(out, share.Hold{Phase: phase, Minor: card.Minor, MiB: card.MemoryMiB, Whole: card.Whole})
			}
		}
	}
	for _, c := range p.Spec.InitContainers {
		if isSidecar(c) {
			add(c.Name, share.Sidecar)
		} else {
			add(c.Name, share.Init)
		}
	}
	for _, c := range p.Spec.Containers {
		add(c.Name, share.App)
	}
	return out
}

func (n *nodeCards) chargeGuess(u units) {
	for range u.whole {
		for i := range n.cards {
			if c := &n.cards[i]; c.usable() && !c.holders {
				c.holders, c.whole = true, true
				break
			}
		}
	}
	var roomiest *card
	for i := range n.cards {
		if c := &n.cards[i]; c.usable() && !c.whole && (roomiest == nil || c.freeMiB > roomiest.freeMiB) {
			roomiest = c
		}
	}
	if roomiest != nil && (u.memory > 0 || u.slices > 0) {
		roomiest.holders = true
		roomiest.freeMiB = max(0, share.Sub(roomiest.freeMiB,
			share.Add(share.Mul(u.memory, n.unitMiB), share.Mul(u.slices, share.SliceMiB(roomiest.MemoryMiB, n.sliceCount)))))
	}
}

func (c *card) usable() bool { return c.Health == "" }

// free returns the units that new pods could take now.
func (n *nodeCards) free() units {
	var u units
	for i := range n.cards {
		c := &n.cards[i]
		if !c.usable() || c.whole {
			continue
		}
		if !c.holders {
			u.whole++
		}
		if n.sharing {
			u.memory += share.Units(c.freeMiB, n.unitMiB)
			u.slices += share.SlicesIn(c.freeMiB, c.MemoryMiB, n.sliceCount)
		}
	}
	return u
}

// total returns the units of empty, healthy cards.
func (n *nodeCards) total() units {
	var u units
	for i := range n.cards {
		c := &n.cards[i]
		u.whole++
		u.memory += share.Units(c.MemoryMiB, n.unitMiB)
		u.slices += share.SlicesIn(c.MemoryMiB, c.MemoryMiB, n.sliceCount)
	}
	return u
}

// podUnits returns what Kubernetes counts as the pod's request.
func podUnits(p *corev1.Pod, names *contract.Names) units {
	reqs := podRequests(p)
	value := func(name string) int64 {
		q := reqs[corev1.ResourceName(name)]
		return q.Value()
	}
	return units{value(names.ResourceWhole), value(names.ResourceMemory), value(names.ResourceSlice)}
}

func podRequests(p *corev1.Pod) corev1.ResourceList {
	return resource.PodRequests(p, resource.PodResourcesOptions{})
}

// allocatable returns what the node reports: free now, plus what its pods hold.
func allocatable(free units, pods []*corev1.Pod, names *contract.Names) units {
	for _, p := range pods {
		u := podUnits(p, names)
		free.whole += u.whole
		free.memory += u.memory
		free.slices += u.slices
	}
	return free
}

func isSidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// initialized reports whether all ordinary init containers have ended.
func initialized(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodInitialized {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// finished reports whether the pod holds nothing any more.
func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}
