package collector

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/topscloud/topscloud/exporter/attribution"
	"github.com/topscloud/topscloud/exporter/sampler"
)

// Options of a Collector. Node and Cards are required.
type Options struct {
	// Node is the value of label host.
	Node string
	// Cards returns what is known of the cards now.
	Cards func() sampler.Host
	// Owners returns who holds what now; nil where nothing is to be said of pods.
	Owners func() *attribution.Snapshot
	// Groups are the groups of metrics that are collected; nil is all of Groups().
	Groups []string
	// BaseUnits tells some metrics once more, in the units that Prometheus recommends.
	BaseUnits bool
	// Now is the clock that groups are measured with, time.Now when nil.
	Now func() time.Time
}

// Collector is the collector of all metrics about cards.
type Collector struct {
	o                 Options
	groups            []*group
	duration, success *metric
}

var (
	_ prometheus.Collector = (*Collector)(nil)
	_ prometheus.Gatherer  = (*Collector)(nil)
)

// catalogue is all metrics but those of scrapes.
func catalogue() []metric {
	return slices.Concat(about(), older(), newer(), baseUnits(), parts(), holders())
}

// New returns a collector. An unknown group is an error that names the known ones.
func New(o Options) (*Collector, error) {
	if o.Node == "" || o.Cards == nil {
		return nil, errors.New("collector: want the node's name and its cards")
	}
	all := Groups()
	if o.Groups == nil {
		o.Groups = all
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	for _, g := range o.Groups {
		if !slices.Contains(all, g) {
			return nil, fmt.Errorf("collector %q: want one of %v", g, all)
		}
	}
	c := &Collector{o: o}
	list := catalogue()
	for _, name := range append([]string{""}, all...) {
		g := &group{name: name}
		if name != "" && !slices.Contains(o.Groups, name) || name == Allocation && o.Owners == nil {
			continue
		}
		for i := range list {
			if m := &list[i]; m.group == name && (o.BaseUnits || !m.base) {
				m.finish()
				g.metrics = append(g.metrics, m)
				g.fields |= m.fields
			}
		}
		c.groups = append(c.groups, g)
	}
	own := scrapes()
	c.duration, c.success = &own[0], &own[1]
	c.duration.finish()
	c.success.finish()
	return c, nil
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	out <- c.duration.desc
	out <- c.success.desc
	for _, g := range c.groups {
		for _, m := range g.metrics {
			out <- m.desc
		}
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.collect(func(m *metric, scope *labelSet, value float64, own ...string) { out <- m.series(scope, value, own...) })
}
