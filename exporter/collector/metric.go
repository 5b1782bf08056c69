package collector

import (
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/exporter/attribution"
	"github.com/topscloud/topscloud/exporter/sampler"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
)

// Scopes are the labels that a metric has besides its own.
var (
	hostLabels = []string{"host"}
	// cardLabels say which card it is.
	cardLabels = []string{"host", "minor_number", "uuid", "busid", "slot", "name"}
	// holderLabels name the container as well, where there is one alone.
	holderLabels = append(slices.Clip(cardLabels), "pod_name", "pod_namespace", "container_name")
)

const (
	gaugeKind   = prometheus.GaugeValue
	counterKind = prometheus.CounterValue
)

// metric is a metric of the exporter.
type metric struct {
	// group is what the metric is switched on and off with; empty where it is always told.
	group string
	// name is the whole name.
	name, help string
	// unit is that of the value, for the documentation; empty where it has none.
	unit string
	kind prometheus.ValueType
	// scope is one of the scopes, labels are the metric's own.
	scope, labels []string
	// fields are the readings that it stands on.
	fields eflib.Field
	// older says that the vendor's exporter has it by this name.
	older bool
	// base says that it is told only where base units were asked for.
	base bool
	// of tells the values of a card. What a card does not tell has no value.
	of func(*card, tell)
	// ofHost tells those of the host, where of is nil.
	ofHost func(*scrape, tell)

	// order are the labels sorted by name, as places in scope and labels, one behind the other.
	order []int
	desc  *prometheus.Desc
}

// tell takes a value with the values of the metric's own labels.
type tell func(value float64, own ...string)

// card is what a metric may look at.
type card struct {
	*sampler.Card
	minor string
	// labels, holder are the values of cardLabels and holderLabels.
	labels, holder *labelSet
	// ambiguous says that another card has its minor and its uuid, twin that it comes after that one.
	ambiguous, twin bool

	host     *sampler.Host
	owners   *attribution.Snapshot // nil where nothing is to be said of pods
	podNames map[string]podName    // by uid
	holdings []nodebook.Holding
	pods     []podHolding
	// othersBytes is the memory of processes whose pod holds nothing of the card.
	othersBytes int64
}

// finish fills in what follows from the rest.
func (m *metric) finish() {
	names := slices.Concat(m.scope, m.labels)
	m.order = make([]int, len(names))
	for i := range names {
		m.order[i] = i
	}
	slices.SortFunc(m.order, func(a, b int) int { return strings.Compare(names[a], names[b]) })
	m.desc = prometheus.NewDesc(m.name, m.help, names, nil)
}

// labelsFor are the values of the metric's scope for a card.
func (m *metric) labelsFor(s *scrape, c *card) *labelSet {
	switch len(m.scope) {
	case len(hostLabels):
		return s.labels
	case len(cardLabels):
		return c.labels
	}
	return c.holder
}

// known tells a reading.
func known[T any](r eflib.Reading[T], of func(T) float64, t tell, own ...string) {
	if v, ok := r.Value(); ok {
		t(of(v), own...)
	}
}

func number(v float64) float64 { return v }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// each tells the readings of a card's parts, numbered.
func each(r eflib.Reading[[]eflib.Reading[float64]], t tell, own string) {
	list, _ := r.Value()
	for i, part := range list {
		if v, ok := part.Value(); ok {
			t(v, strconv.Itoa(i), own)
		}
	}
}
