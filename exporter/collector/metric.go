package collector

import (
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/exporter/sampler"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
)

// Labels of a card's series, and of its only holder.
var (
	cardLabels = []string{"host", "minor_number", "uuid", "busid", "slot", "name"}
	podLabels  = []string{"pod_name", "pod_namespace", "container_name"}
)

// point is one value of a metric, with the values of the metric's own labels.
type point struct {
	value  float64
	labels []string
}

// metric is a metric of cards.
type metric struct {
	// group is what the metric is switched on and off with.
	group string
	name  string // behind enflame_gcu_
	help  string
	kind  prometheus.ValueType
	// labels are those beside the card's and its holder's.
	labels []string
	// of reads the values; none where the card does not tell.
	of func(*card) []point

	desc *prometheus.Desc
}

// card is what a metric may look at.
type card struct {
	*sampler.Card
	holdings []nodebook.Holding
}

// gauge returns a reading as the only value of a metric.
func gauge[T any](r eflib.Reading[T], of func(T) float64, labels ...string) []point {
	v, ok := r.Value()
	if !ok {
		return nil
	}
	return []point{{of(v), labels}}
}

func number(v float64) float64 { return v }

// each returns the readings of a card's parts, numbered.
func each(r eflib.Reading[[]eflib.Reading[float64]], labels ...string) []point {
	var out []point
	list, _ := r.Value()
	for i, part := range list {
		if v, ok := part.Value(); ok {
			out = append(out, point{v, append([]string{strconv.Itoa(i)}, labels...)})
		}
	}
	return out
}

// describe fills in the descriptions of metrics and returns them.
func describe(list []metric) []metric {
	for i := range list {
		m := &list[i]
		m.desc = prometheus.NewDesc("enflame_gcu_"+m.name, m.help, slices.Concat(cardLabels, podLabels, m.labels), nil)
	}
	return list
}
