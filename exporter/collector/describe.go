package collector

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Description is what is to be known of a metric without reading it.
type Description struct {
	Name, Type, Unit, Help string
	Labels                 []string
	// Group is empty where the metric is always told.
	Group string
	// Older says that the vendor's exporter has it, BaseUnits that it is told only with --base-units.
	Older, BaseUnits bool
}

// Descriptions returns all metrics that the exporter can tell, sorted by name.
func Descriptions() []Description {
	list := append(catalogue(), scrapes()...)
	list = append(list, metric{group: Allocation, name: failuresName, help: failuresHelp, kind: counterKind, labels: []string{"source"}})
	out := make([]Description, 0, len(list))
	for _, m := range list {
		kind := "gauge"
		if m.kind == prometheus.CounterValue {
			kind = "counter"
		}
		out = append(out, Description{
			Name: m.name, Type: kind, Unit: m.unit, Help: m.help, Labels: slices.Concat(m.scope, m.labels),
			Group: m.group, Older: m.older, BaseUnits: m.base,
		})
	}
	slices.SortFunc(out, func(a, b Description) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// CardLabels and HolderLabels are the labels that many metrics share.
func CardLabels() []string   { return slices.Clone(cardLabels) }
func HolderLabels() []string { return slices.Clone(holderLabels) }

// KeptNames are the names that break a rule of Prometheus' linter, with the reason why they stay.
func KeptNames() map[string]string {
	const older = "the vendor's exporter has it by this name"
	return map[string]string{
		"enflame_gcu_count": older, "enflame_vgcu_count": older,
		"enflame_gcu_ecc_double_bit_error_total_count": older, "enflame_gcu_ecc_single_bit_error_total_count": older,
	}
}
