package agent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/deviceplugin/plugin"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
)

// supply is what the device list of one resource is made from.
type supply struct {
	kind share.Kind
	node *placement.Node
	// counted is what kubelet counts of the resource for the pods that are here.
	counted int64
	// held are the IDs that containers have; true where a fault of the card behind the ID is proven.
	held map[string]bool
	// open is false while nothing may be offered to new pods; tooMany leaves out all IDs that are not needed.
	open, tooMany bool
	// numa is the NUMA node of each whole card by minor; nil where one is not known.
	numa map[int]int
	// wanted are free cards that records of waiting pods name, offered first.
	wanted map[int]bool
	// before is the list as it is.
	before []kubelet.Device
}

// list makes the device list: exactly free + counted healthy IDs, of which held ones are unhealthy only with a
// proven fault. What is more is unhealthy. The number of IDs never falls below what the cards have.
func (s *supply) list() []kubelet.Device {
	healthy := map[string]bool{}
	for id, faulty := range s.held {
		healthy[id] = !faulty
	}
	target := s.counted
	if s.open {
		target = share.Add(target, free(s.node, s.kind))
	}
	missing := target
	for _, ok := range healthy {
		if ok {
			missing--
		}
	}
	was := map[string]bool{}
	for _, d := range s.before {
		was[d.ID] = d.Healthy
	}
	var spare []string
	for _, id := range s.ids(missing) {
		if _, taken := s.held[id]; !taken {
			spare = append(spare, id)
		}
	}
	// Those offered already stay: kubelet may be giving them out at this moment.
	slices.SortStableFunc(spare, func(a, b string) int {
		return cmp.Or(s.rank(a)-s.rank(b), index(!was[a])-index(!was[b]))
	})
	for i, id := range spare {
		healthy[id] = int64(i) < missing
	}
	out := make([]kubelet.Device, 0, len(healthy))
	for _, id := range slices.Sorted(maps.Keys(healthy)) {
		out = append(out, kubelet.Device{ID: id, Healthy: healthy[id], NUMA: s.numaOf(id)})
	}
	return out
}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ids returns names for what the cards have, in order, and for as many more as must be free.
func (s *supply) ids(free int64) []string {
	var out []string
	if !s.kind.Fractional() {
		for i := range s.node.Cards {
			out = append(out, plugin.ID(s.node.Cards[i].Minor))
		}
	} else if !s.tooMany {
		for i := range total(s.node, s.kind) {
			out = append(out, fmt.Sprintf("u%04d", i))
		}
	}
	unheld := int64(0)
	for _, id := range out {
		if _, taken := s.held[id]; !taken {
			unheld++
		}
	}
	// More than the cards have is needed where kubelet counts more than a pod holds: for the life of a pod
	// whose init container asked for more, and for pods on broken cards.
	for n := 0; unheld < free; n++ {
		id := fmt.Sprintf("x%04d", n)
		out = append(out, id)
		if _, taken := s.held[id]; !taken {
			unheld++
		}
	}
	return out
}

// rank orders IDs of whole cards: a free card's ID is best, so that ID and card are one where they can be.
func (s *supply) rank(id string) int {
	if s.kind.Fractional() {
		return 0
	}
	minor, err := plugin.ParseID(id)
	if err != nil {
		return 2
	}
	i := s.node.Index(minor)
	if i >= 0 && (s.wanted[minor] || s.node.Cards[i].Free() && s.node.Cards[i].Usable()) {
		return 0
	}
	return 1
}

// numaOf is -1 where not known: a hint that is wrong for one card misleads for all.
func (s *supply) numaOf(id string) int {
	if s.kind.Fractional() || s.numa == nil {
		return -1
	}
	minor, err := plugin.ParseID(id)
	if err != nil {
		return -1
	}
	if n, ok := s.numa[minor]; ok {
		return n
	}
	return -1
}

// free is what new pods could take now: whole cards, units or slices.
func free(n *placement.Node, kind share.Kind) int64 {
	if !kind.Fractional() {
		return int64(n.FreeSet().Len())
	}
	if !n.Sharing {
		return 0
	}
	var sum int64
	for i := range n.Cards {
		c := &n.Cards[i]
		sum = share.Add(sum, parts(n, kind, c.FreeMiB(), c.TotalMiB))
	}
	return sum
}

// total is what all cards have when nothing is held.
func total(n *placement.Node, kind share.Kind) int64 {
	var sum int64
	for i := range n.Cards {
		sum = share.Add(sum, parts(n, kind, n.Cards[i].TotalMiB, n.Cards[i].TotalMiB))
	}
	return sum
}

// parts is how many units or slices lie in free memory of a card.
func parts(n *placement.Node, kind share.Kind, freeMiB, cardMiB int64) int64 {
	if kind == share.Slices {
		return share.SlicesIn(freeMiB, cardMiB, n.SliceCount)
	}
	return share.Units(freeMiB, n.UnitMiB)
}

// tooFine says why a memory unit is not served: one card would have more IDs than is good. It names the smallest
// unit that would do.
func tooFine(n *placement.Node, forced bool) string {
	if forced {
		return ""
	}
	for i := range n.Cards {
		c := &n.Cards[i]
		if share.Units(c.TotalMiB, n.UnitMiB) <= maxUnits {
			continue
		}
		fits := "none of the units fits"
		for _, u := range [...]struct {
			name string
			mib  int64
		}{{"0.01", 10}, {"0.1", 102}, {"1", 1024}} {
			if share.Units(c.TotalMiB, u.mib) <= maxUnits {
				fits = "the smallest unit that fits is " + u.name + " GiB"
				break
			}
		}
		return fmt.Sprintf("memory units are not offered: a unit of %d MiB gives a card of %d MiB %d device IDs, at most %d are good for kubelet; %s (or --force-memory-unit)",
			n.UnitMiB, c.TotalMiB, share.Units(c.TotalMiB, n.UnitMiB), maxUnits, fits)
	}
	return ""
}
