package collector

import (
	"strconv"

	"github.com/topscloud/topscloud/exporter/attribution"
	"github.com/topscloud/topscloud/exporter/sampler"
)

// scrape is what is known at one moment, made ready for all metrics.
type scrape struct {
	host   sampler.Host
	owners *attribution.Snapshot // nil where nothing is to be said of pods
	labels *labelSet             // values of hostLabels
	// seen says whether the host's cards can be seen at all.
	seen      bool
	cards     []card
	colliding int
	podNames  map[string]podName
}

// prepare makes a scrape ready.
func (c *Collector) prepare() *scrape {
	s := &scrape{host: c.o.Cards(), labels: newLabelSet(hostLabels, []string{c.o.Node}), podNames: map[string]podName{}}
	if c.o.Owners != nil {
		s.owners = c.o.Owners()
		for _, h := range s.owners.Holdings {
			s.podNames[h.PodUID] = podName{h.Namespace, h.Pod}
		}
	}
	s.seen = s.host.Known && (len(s.host.Cards) > 0 || s.host.Err == nil)
	s.cards = make([]card, 0, len(s.host.Cards))
	for i := range s.host.Cards {
		s.add(c.o.Node, i)
	}
	return s
}

// add makes the i-th card ready.
//
// The bus id tells cards apart that have one minor, and the minor those that have one bus id, so that no two cards
// have the same labels; one that is there twice in both is one card. Of two with one minor and one uuid the book
// cannot say which is meant, and neither is given to its holder.
func (s *scrape) add(node string, i int) {
	one := &s.host.Cards[i]
	k := card{Card: one, host: &s.host, owners: s.owners, podNames: s.podNames, minor: strconv.Itoa(one.Device.Minor)}
	collides := false
	for j := range s.host.Cards {
		other := &s.host.Cards[j]
		if j == i {
			continue
		}
		minor, address := other.Device.Minor == one.Device.Minor, other.Device.PCIAddress == one.Device.PCIAddress
		uuid := other.Device.UUID == one.Device.UUID
		if minor && address && j < i {
			s.colliding++
			return
		}
		collides = collides || minor || address || uuid && one.Device.UUID != ""
		k.ambiguous = k.ambiguous || minor && uuid
		k.twin = k.twin || minor && uuid && j < i
	}
	if collides {
		s.colliding++
	}
	names := []string{node, k.minor, one.Device.UUID, one.Device.PCIAddress.String(), one.Identity.Slot, nameOf(one), "", "", ""}
	k.labels = newLabelSet(cardLabels, names[:len(cardLabels)])
	if s.owners != nil && !k.ambiguous {
		k.holdings = s.owners.Of(&one.Device)
	}
	if len(k.holdings) == 1 {
		h := k.holdings[0]
		copy(names[len(cardLabels):], []string{h.Pod, h.Namespace, h.Container})
	}
	k.holder = newLabelSet(holderLabels, names)
	attribute(&k)
	s.cards = append(s.cards, k)
}
