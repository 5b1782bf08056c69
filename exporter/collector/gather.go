package collector

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

var (
	typeGauge   = dto.MetricType_GAUGE
	typeCounter = dto.MetricType_COUNTER
)

// value is a series with all that it needs to be written, in one piece of memory.
type value struct {
	metric dto.Metric
	gauge  dto.Gauge
	value  float64
}

// Gather implements prometheus.Gatherer. Families are sorted by name, as a registry gives them; series are in the order
// of cards.
func (c *Collector) Gather() ([]*dto.MetricFamily, error) {
	families := make([]*dto.MetricFamily, 0, 64)
	at := map[*metric]*dto.MetricFamily{}
	var last *metric
	var family *dto.MetricFamily
	c.collect(func(m *metric, scope *labelSet, v float64, own ...string) {
		if m != last {
			last, family = m, at[m]
			if family == nil {
				family = &dto.MetricFamily{Name: &m.name, Help: &m.help, Type: &typeGauge}
				if m.kind == prometheus.CounterValue {
					family.Type = &typeCounter
				}
				at[m], families = family, append(families, family)
			}
		}
		one := &value{value: v}
		one.metric.Label = m.labelled(scope, own)
		if m.kind == prometheus.CounterValue {
			one.metric.Counter = &dto.Counter{Value: &one.value}
		} else {
			one.gauge.Value, one.metric.Gauge = &one.value, &one.gauge
		}
		family.Metric = append(family.Metric, &one.metric)
	})
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return families, nil
}

// Both gathers one after the other. Their metrics must not share a name.
func Both(first, second prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		a, err := first.Gather()
		if err != nil {
			return a, err
		}
		b, err := second.Gather()
		return slices.Concat(a, b), err
	})
}
