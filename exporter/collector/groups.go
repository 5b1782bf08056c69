package collector

import (
	"slices"

	"github.com/topscloud/topscloud/eflib"
)

// Groups of metrics that are named elsewhere.
const (
	groupCount     = "count"
	groupInfo      = "info"
	groupProcesses = "processes"
	Allocation     = "allocation" // who holds what
)

// Groups returns the names of all groups, sorted.
func Groups() []string {
	var out []string
	for _, m := range catalogue() {
		if m.group != "" {
			out = append(out, m.group)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// group is the metrics that are switched on and off together.
type group struct {
	name    string // empty is of those that are always on
	metrics []*metric
	fields  eflib.Field
}

// told takes a value of a metric.
type told func(m *metric, scope *labelSet, value float64, own ...string)

// collect tells all metrics of the group, one after the other.
func (g *group) collect(s *scrape, out told) {
	for _, m := range g.metrics {
		if m.ofHost != nil {
			m.ofHost(s, func(value float64, own ...string) { out(m, s.labels, value, own...) })
			continue
		}
		for i := range s.cards {
			scope := m.labelsFor(s, &s.cards[i])
			m.of(&s.cards[i], func(value float64, own ...string) { out(m, scope, value, own...) })
		}
	}
}

// fails says whether the group lacks something that it should have. What a card or a host does not support is not
// lacking.
func (g *group) fails(s *scrape) bool {
	if !s.seen {
		return true
	}
	if g.name == Allocation && (s.owners.Agent != nil || s.owners.Kubelet != nil) {
		return true
	}
	for i := range s.cards {
		c := &s.cards[i]
		if c.Lacking&g.fields != 0 || g.fields.Has(eflib.FieldProcesses) && s.host.ProcessesErr == nil && c.ProcessesErr != nil {
			return true
		}
	}
	return false
}

// collect tells the metrics of all groups, how long each took and whether it has all that it should.
func (c *Collector) collect(out told) {
	s, none := c.prepare(), newLabelSet(nil, nil)
	for _, g := range c.groups {
		began := c.o.Now()
		g.collect(s, out)
		if g.name != "" {
			out(c.duration, none, c.o.Now().Sub(began).Seconds(), g.name)
			out(c.success, none, truth(!g.fails(s)), g.name)
		}
	}
}

// scrapes are the metrics of the groups themselves.
func scrapes() []metric {
	return []metric{
		{name: "scrape_collector_duration_seconds", help: "How long it took to put the group's metrics together. No card is asked meanwhile.", unit: "seconds", kind: gaugeKind, labels: []string{"collector"}},
		{name: "scrape_collector_success", help: "1 if the group has all that cards, agent and kubelet can tell, else 0.", kind: gaugeKind, labels: []string{"collector"}},
	}
}
