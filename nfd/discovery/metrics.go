package discovery

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count what discovery does.
type Metrics struct {
	all []prometheus.Collector

	publishes, publishErrors, readErrors, problems prometheus.Counter
	labels, lastSuccess                            prometheus.Gauge
}

// NewMetrics returns metrics that nobody collects yet.
func NewMetrics() *Metrics {
	m := &Metrics{}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "gcu_feature_discovery_" + name, Help: help})
		m.all = append(m.all, c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "gcu_feature_discovery_" + name, Help: help})
		m.all = append(m.all, g)
		return g
	}
	m.publishes = counter("publishes_total", "Writes of the node's labels, by way of the configured output.")
	m.publishErrors = counter("publish_errors_total", "Looks after which the labels could not be read back or written.")
	m.readErrors = counter("read_errors_total", "Looks in which nothing could be read of the cards.")
	m.problems = counter("card_problems_total", "Looks in which some card could not be read in full.")
	m.labels = gauge("labels", "Labels that are published.")
	m.lastSuccess = gauge("last_success_timestamp_seconds", "When the labels were last known to be what the cards are, in Unix time.")
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

// looked notes a look that succeeded.
func (m *Metrics) looked(labels int) {
	m.labels.Set(float64(labels))
	m.lastSuccess.SetToCurrentTime()
}
