package collector

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/exporter/attribution"
	"github.com/topscloud/topscloud/exporter/sampler"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
)

// Options of a Collector. Node, Cards and Owners are required.
type Options struct {
	// Node is the value of label host.
	Node string
	// Cards and Owners return what is known now.
	Cards  func() sampler.Host
	Owners func() *attribution.Snapshot
	// Groups are the groups of metrics that are collected; nil is all of Groups().
	Groups []string
}

// Collector is the collector of all metrics about cards.
type Collector struct {
	o       Options
	metrics []metric
	on      map[string]bool

	up, count, info, cardUp, allocation, other, attributed, implausible *prometheus.Desc
}

var _ prometheus.Collector = (*Collector)(nil)

// Groups of metrics that are not of one card's readings.
const (
	groupCount = "count"
	groupInfo  = "info"
	Allocation = "allocation" // who holds what
)

// Groups returns the names of all groups, sorted.
func Groups() []string {
	out := []string{groupCount, groupInfo, Allocation}
	for _, m := range older() {
		out = append(out, m.group)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// New returns a collector. An unknown group is an error that names the known ones.
func New(o Options) (*Collector, error) {
	if o.Node == "" || o.Cards == nil || o.Owners == nil {
		return nil, errors.New("collector: want the node's name, its cards and their owners")
	}
	if o.Groups == nil {
		o.Groups = Groups()
	}
	c := &Collector{o: o, on: map[string]bool{}}
	for _, g := range o.Groups {
		if !slices.Contains(Groups(), g) {
			return nil, fmt.Errorf("collector %q: want one of %v", g, Groups())
		}
		c.on[g] = true
	}
	for _, m := range describe(older()) {
		if c.on[m.group] {
			c.metrics = append(c.metrics, m)
		}
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("enflame_gcu_"+name, help, labels, nil)
	}
	c.up = desc("exporter_up", "1 if the host's cards can be seen, else 0.", "host")
	c.count = desc("count", "Cards of the host.", "host")
	c.info = desc("info", "Always 1; the labels say which card it is.", "host", "minor_number", "uuid", "slot", "dev_sn", "fw_version")
	c.cardUp = desc("up", "1 if the card answered when it was last asked, else 0.", cardLabels...)
	c.allocation = desc("allocation_bytes", "Memory of the card that a container was given; all of it where the card is the container's alone.",
		slices.Concat(cardLabels, podLabels, []string{"pod_uid", "kind", "resource"})...)
	c.other = desc("unattributed_devices", "Devices of a resource that kubelet gave a container and the node agent knows no card of.",
		append([]string{"host", "resource"}, podLabels...)...)
	c.attributed = desc("attribution_up", "1 if the source says who holds what, else 0: then no series carries a pod.", "host", "source")
	c.implausible = desc("implausible_readings", "Readings of the last look that cannot be true and are left out.", cardLabels...)
	return c, nil
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.up, c.count, c.info, c.cardUp, c.allocation, c.other, c.attributed, c.implausible} {
		out <- d
	}
	for i := range c.metrics {
		out <- c.metrics[i].desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	host, owners := c.o.Cards(), c.o.Owners()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	seen := host.Known && (len(host.Cards) > 0 || host.Err == nil)
	send(c.up, prometheus.GaugeValue, truth(seen), c.o.Node)
	if seen && c.on[groupCount] {
		send(c.count, prometheus.GaugeValue, float64(len(host.Cards)), c.o.Node)
	}
	if c.on[Allocation] {
		send(c.attributed, prometheus.GaugeValue, truth(owners.Agent == nil), c.o.Node, "agent")
		send(c.attributed, prometheus.GaugeValue, truth(owners.Kubelet == nil), c.o.Node, "kubelet")
		for _, o := range owners.Others {
			send(c.other, prometheus.GaugeValue, float64(o.Count), c.o.Node, o.Resource, o.Pod, o.Namespace, o.Container)
		}
	}
	for i := range host.Cards {
		c.collectCard(send, &host.Cards[i], owners)
	}
}

func (c *Collector) collectCard(send func(*prometheus.Desc, prometheus.ValueType, float64, ...string), s *sampler.Card, owners *attribution.Snapshot) {
	minor := strconv.Itoa(s.Device.Minor)
	labels := []string{c.o.Node, minor, s.Device.UUID, s.Device.PCIAddress.String(), s.Identity.Slot, nameOf(s)}
	k := &card{Card: s, holdings: owners.Of(s.Device.Minor, s.Device.UUID)}
	pod := []string{"", "", ""}
	if len(k.holdings) == 1 {
		pod = podOf(k.holdings[0])
	}
	send(c.cardUp, prometheus.GaugeValue, truth(s.Err == nil), labels...)
	if s.Err == nil {
		send(c.implausible, prometheus.GaugeValue, float64(implausible(&s.Sample)), labels...)
	}
	if c.on[groupInfo] {
		serial := s.Identity.SerialNumber
		if serial == "" {
			serial = s.Device.SerialNumber
		}
		send(c.info, prometheus.GaugeValue, 1, c.o.Node, minor, s.Device.UUID, s.Identity.Slot, serial, s.Identity.Firmware)
	}
	if c.on[Allocation] {
		for _, h := range k.holdings {
			send(c.allocation, prometheus.GaugeValue, float64(h.MemoryMiB)*(1<<20), slices.Concat(labels, podOf(h), []string{h.PodUID, h.Kind, h.Resource})...)
		}
	}
	for i := range c.metrics {
		m := &c.metrics[i]
		for _, p := range m.of(k) {
			send(m.desc, m.kind, p.value, slices.Concat(labels, pod, p.labels)...)
		}
	}
}

// nameOf is the card's name as the library tells it ("Enflame T10"), made from its model where it does not.
func nameOf(s *sampler.Card) string {
	if s.Identity.Name == "" && s.Device.Model != "" {
		return "Enflame " + s.Device.Model
	}
	return s.Identity.Name
}

func podOf(h nodebook.Holding) []string { return []string{h.Pod, h.Namespace, h.Container} }

// implausible counts the readings that eflib refused to tell.
func implausible(s *eflib.Sample) int {
	n := 0
	for _, r := range s.All() {
		if errors.Is(r.Err(), eflib.ErrImplausible) {
			n++
		}
	}
	return n
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
