package agent

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/gcushare/placement"
)

// Metrics count what an agent does.
type Metrics struct {
	all []prometheus.Collector

	registrations, lookups, refusals, flips *prometheus.CounterVec
	adopted, evictions, nodeWrites          prometheus.Counter
	freeUnits, countedUnits, offered        *prometheus.GaugeVec
	streams                                 *prometheus.GaugeVec
	cardMiB, heldMiB, usable                *prometheus.GaugeVec
	advisory, nri                           prometheus.Gauge
}

// NewMetrics returns metrics that nobody collects yet.
func NewMetrics() *Metrics {
	m := &Metrics{}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gcu_device_plugin_" + name, Help: help}, labels)
		m.all = append(m.all, v)
		return v
	}
	counter := func(name, help string) prometheus.Counter { return counters(name, help).WithLabelValues() }
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gcu_device_plugin_" + name, Help: help}, labels)
		m.all = append(m.all, v)
		return v
	}
	m.registrations = counters("kubelet_events_total", "What happened between the agent and kubelet.", "resource", "event")
	m.lookups = counters("identity_lookups_total", "Whose devices a container start was about, by the source that told.", "source")
	m.refusals = counters("refusals_total", "Container starts that were refused, by cause.", "cause")
	m.flips = counters("health_changes_total", "Changes of cards' health, by kind of change.", "change")
	m.adopted = counter("adopted_pods_total", "Pods without a record that the node placed.")
	m.evictions = counter("evictions_total", "Pods that were evicted because they were refused for long.")
	m.nodeWrites = counter("node_writes_total", "Writes of the Node object.")
	m.freeUnits = gauges("free_units", "Units of a resource that new pods could take.", "resource")
	m.countedUnits = gauges("counted_units", "Units of a resource that kubelet counts for the node's pods.", "resource")
	m.offered = gauges("healthy_devices", "Healthy device IDs of a resource, held ones among them.", "resource")
	m.streams = gauges("kubelet_streams", "Streams on which kubelet listens to the resource's devices: 1, and 0 while it does not offer the resource.", "resource")
	m.cardMiB = gauges("card_memory_mib", "Memory of a card.", "minor_number", "uuid")
	m.heldMiB = gauges("card_held_mib", "Memory of a card that is promised to pods.", "minor_number", "uuid")
	m.usable = gauges("card_usable", "1 if a card is given to new pods, else 0.", "minor_number", "uuid")
	m.advisory = gauges("memory_limit_advisory", "1 if the memory a container may use is told to it and not enforced.").WithLabelValues()
	m.nri = gauges("nri_connected", "1 while each container's cards are compared with its record once more by the engine's NRI.").WithLabelValues()
	m.advisory.Set(1) // no published driver enforces it
	return m
}

// Register registers the metrics.
func (m *Metrics) Register(r prometheus.Registerer) error {
	for _, c := range m.all {
		if err := r.Register(c); err != nil {
			return err
		}
	}
	return nil
}

var eventWords = map[kubelet.EventKind]string{
	kubelet.Registered: "registered", kubelet.RegisterFailed: "register_failed", kubelet.StreamOpened: "stream_opened",
	kubelet.StreamClosed: "stream_closed", kubelet.DevicesSent: "devices_sent",
}

func (m *Metrics) kubelet(e kubelet.Event) {
	m.registrations.WithLabelValues(e.Resource, eventWords[e.Kind]).Inc()
	switch e.Kind {
	case kubelet.StreamOpened:
		m.streams.WithLabelValues(e.Resource).Inc()
	case kubelet.StreamClosed: // perhaps after a restarted kubelet has opened the next one
		m.streams.WithLabelValues(e.Resource).Dec()
	}
}

// serves shows a resource that kubelet may know nothing of yet.
func (m *Metrics) serves(resource string) { m.streams.WithLabelValues(resource).Add(0) }

func (m *Metrics) lookedUp(s kubelet.Source) {
	word := "checkpoint"
	if s == kubelet.FromPodResources {
		word = "pod_resources"
	}
	m.lookups.WithLabelValues(word).Inc()
}

func (m *Metrics) units(resource string, free, counted int64, healthy int) {
	m.freeUnits.WithLabelValues(resource).Set(float64(free))
	m.countedUnits.WithLabelValues(resource).Set(float64(counted))
	m.offered.WithLabelValues(resource).Set(float64(healthy))
}

func (m *Metrics) node(n *placement.Node) {
	for _, g := range []*prometheus.GaugeVec{m.cardMiB, m.heldMiB, m.usable} {
		g.Reset() // a card that is gone has no series
	}
	for i := range n.Cards {
		c := &n.Cards[i]
		labels := []string{strconv.Itoa(c.Minor), c.UUID}
		m.cardMiB.WithLabelValues(labels...).Set(float64(c.TotalMiB))
		m.heldMiB.WithLabelValues(labels...).Set(float64(c.UsedMiB))
		m.usable.WithLabelValues(labels...).Set(float64(index(c.Usable())))
	}
}
