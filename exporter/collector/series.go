package collector

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A scrape of 16 cards has more than a thousand series, and those of a card share most of their labels. So labels are
// made once for each card and shared, where the client library's own constant metrics make and sort all of them for
// each series. Nobody changes a label once it is made.

// labelSet is the values of a scope's labels.
type labelSet struct {
	pairs  []*dto.LabelPair // in the scope's order
	sorted []*dto.LabelPair // by name
}

// newLabelSet returns labels with values, both in the same order. Texts of a driver may be no UTF-8, which would cost
// the whole scrape.
func newLabelSet(names, values []string) *labelSet {
	list := make([]dto.LabelPair, len(names))
	s := &labelSet{pairs: make([]*dto.LabelPair, len(names))}
	for i := range names {
		value := strings.ToValidUTF8(values[i], "?")
		list[i].Name, list[i].Value = &names[i], &value
		s.pairs[i] = &list[i]
	}
	s.sorted = slices.Clone(s.pairs)
	slices.SortFunc(s.sorted, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return s
}

// series is one value of a metric.
type series struct {
	metric *metric
	labels []*dto.LabelPair // sorted by name
	value  float64
}

var _ prometheus.Metric = (*series)(nil)

// series returns a value of the metric with the labels of its scope and those of its own, in their order.
func (m *metric) series(scope *labelSet, value float64, own ...string) *series {
	return &series{metric: m, labels: m.labelled(scope, own), value: value}
}

// labelled returns the labels of a series, sorted by name.
func (m *metric) labelled(scope *labelSet, own []string) []*dto.LabelPair {
	if len(own) == 0 {
		return scope.sorted
	}
	extra := make([]dto.LabelPair, len(own))
	values := make([]string, len(own))
	for i := range own {
		values[i] = strings.ToValidUTF8(own[i], "?")
		extra[i].Name, extra[i].Value = &m.labels[i], &values[i]
	}
	labels := make([]*dto.LabelPair, len(m.order))
	for i, from := range m.order {
		if from < len(scope.pairs) {
			labels[i] = scope.pairs[from]
		} else {
			labels[i] = &extra[from-len(scope.pairs)]
		}
	}
	return labels
}

// Desc implements prometheus.Metric.
func (s *series) Desc() *prometheus.Desc { return s.metric.desc }

// Write implements prometheus.Metric.
func (s *series) Write(out *dto.Metric) error {
	out.Label = s.labels
	if s.metric.kind == prometheus.CounterValue {
		out.Counter = &dto.Counter{Value: &s.value}
	} else {
		out.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}
