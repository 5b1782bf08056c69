package simnode

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

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

// chargeRecord charges each card the most that the pod's containers use of it at one time from now on.
func (n *nodeCards) chargeRecord(p *corev1.Pod, record *contract.Allocation) {
	held := map[int]int64{}
	whole := map[int]bool{}
	add := func(into map[int]int64, name string) {
		for _, c := range record.Containers {
			if c.Name != name {
				continue
			}
			for _, card := range c.Cards {
				into[card.Minor] += card.MemoryMiB
				whole[card.Minor] = whole[card.Minor] || card.Whole
			}
		}
	}
	initDone := initialized(p)
	sidecars := map[int]int64{}
	for _, c := range p.Spec.InitContainers {
		if isSidecar(c) {
			add(sidecars, c.Name)
			continue
		}
		if initDone {
			continue
		}
		now := map[int]int64{}
		add(now, c.Name)
		for minor, mib := range now {
			held[minor] = max(held[minor], mib+sidecars[minor])
		}
	}
	for _, c := range p.Spec.Containers {
		add(sidecars, c.Name)
	}
	for minor, mib := range sidecars {
		held[minor] = max(held[minor], mib)
	}
	for i := range n.cards {
		c := &n.cards[i]
		if mib, ok := held[c.Minor]; ok {
			c.holders = true
			c.whole = c.whole || whole[c.Minor]
			c.freeMiB = max(0, c.freeMiB-mib)
		}
	}
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
		roomiest.freeMiB = max(0, roomiest.freeMiB-u.memory*n.unitMiB-u.slices*(roomiest.MemoryMiB/n.sliceCount))
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
			u.memory += c.freeMiB / n.unitMiB
			u.slices += slicesIn(c.freeMiB, c.MemoryMiB, n.sliceCount)
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
		u.memory += c.MemoryMiB / n.unitMiB
		u.slices += slicesIn(c.MemoryMiB, c.MemoryMiB, n.sliceCount)
	}
	return u
}

// slicesIn counts the slices that fit into free memory; a slice is the card's memory by the count,
// rounded down, and the rest of that division is never handed out.
func slicesIn(freeMiB, cardMiB, count int64) int64 {
	slice := cardMiB / count
	if slice == 0 {
		return 0
	}
	return min(freeMiB/slice, count)
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
