package collector

import (
	"strconv"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/exporter/sampler"
)

// newer are the metrics of a card's own readings that the vendor's exporter does not have.
func newer() []metric {
	return []metric{
		{group: "ecc", name: "enflame_gcu_ecc_enabled", help: "1 if memory error correction is on, else 0.", kind: gaugeKind, scope: cardLabels, fields: eflib.FieldECC,
			of: func(c *card, t tell) { known(c.Sample.ECC, func(e eflib.ECC) float64 { return truth(e.Enabled) }, t) }},
		{group: "ecc", name: "enflame_gcu_ecc_pending", help: "1 if memory error correction will be on after the next reset, else 0.", kind: gaugeKind, scope: cardLabels, fields: eflib.FieldECC,
			of: func(c *card, t tell) { known(c.Sample.ECC, func(e eflib.ECC) float64 { return truth(e.Pending) }, t) }},
		{group: "ecc", name: "enflame_gcu_row_retirement_pending", help: "1 if memory waits for the next reset to be taken out of use, else 0.", kind: gaugeKind, scope: cardLabels, fields: eflib.FieldECC,
			of: func(c *card, t tell) {
				known(c.Sample.ECC, func(e eflib.ECC) float64 { return truth(e.RetirementPending) }, t)
			}},
		{group: "rma", name: "enflame_gcu_rma_flagged", help: "1 if the card is to be sent back, else 0.", kind: gaugeKind, scope: cardLabels, fields: eflib.FieldRMA,
			of: func(c *card, t tell) { known(c.Sample.RMA, func(r eflib.RMA) float64 { return truth(r.Flagged) }, t) }},
		{group: "error_records", name: "enflame_gcu_error_records_total", help: "Records that the driver's error log has had since the exporter started, by the driver's reset type.",
			kind: counterKind, scope: cardLabels, labels: []string{"class"}, fields: eflib.FieldErrorRecords,
			of: func(c *card, t tell) {
				for _, r := range c.Records {
					t(float64(r.Records), strconv.Itoa(int(r.Type)))
				}
			}},
		{group: "power", name: "enflame_gcu_energy_joules_total", help: "Energy that the card has drawn since the exporter started, added up from its power.", unit: "joules",
			kind: counterKind, scope: cardLabels, fields: eflib.FieldPower,
			of: func(c *card, t tell) {
				if c.Metered {
					t(c.Joules)
				}
			}},
		{group: "pcie", name: "enflame_gcu_pcie_throughput", help: "What goes over the PCIe link, in the driver's unit.", unit: "the driver's", kind: gaugeKind, scope: holderLabels,
			labels: []string{"direction"}, fields: eflib.FieldPCIeThroughput,
			of: func(c *card, t tell) {
				known(c.Sample.PCIeThroughput, func(v eflib.Throughput) float64 { return v.Transmit }, t, "transmit")
				known(c.Sample.PCIeThroughput, func(v eflib.Throughput) float64 { return v.Receive }, t, "receive")
			}},
		{group: "pcie", name: "enflame_gcu_pcie_nak_total", help: "Packets of the PCIe link that were not accepted and sent again, as the driver counts them.", kind: counterKind, scope: cardLabels,
			labels: []string{"direction"}, fields: eflib.FieldPCIeThroughput,
			of: func(c *card, t tell) {
				known(c.Sample.PCIeThroughput, func(v eflib.Throughput) float64 { return float64(v.TransmitNAK) }, t, "transmit")
				known(c.Sample.PCIeThroughput, func(v eflib.Throughput) float64 { return float64(v.ReceiveNAK) }, t, "receive")
			}},
		{group: "pcie", name: "enflame_gcu_pcie_link_generation", help: "Generation that the PCIe link runs at.", kind: gaugeKind, scope: cardLabels, fields: eflib.FieldPCIeLink,
			of: func(c *card, t tell) {
				known(c.Sample.PCIeLink, func(l eflib.Link) float64 { return float64(l.Generation) }, t)
			}},
		{group: "pcie", name: "enflame_gcu_pcie_max_link_generation", help: "Generation that the PCIe link can run at.", kind: gaugeKind, scope: cardLabels, fields: eflib.FieldPCIeLink,
			of: func(c *card, t tell) {
				known(c.Sample.PCIeLink, func(l eflib.Link) float64 { return float64(l.MaxGeneration) }, t)
			}},
		{group: "temperature", name: "enflame_gcu_temperature_celsius", help: "Temperature of the processors' chip (asic), the memory and the board.", unit: "celsius",
			kind: gaugeKind, scope: holderLabels, labels: []string{"sensor"}, fields: eflib.FieldTemperature,
			of: func(c *card, t tell) {
				known(c.Sample.ASICCelsius, number, t, "asic")
				known(c.Sample.HBMCelsius, number, t, "memory")
				known(c.Sample.BoardCelsius, number, t, "board")
			}},
		{group: "sample", name: "enflame_gcu_sample_duration_seconds", help: "How long the last look at the card took.", unit: "seconds", kind: gaugeKind, scope: cardLabels,
			of: looked(func(c *sampler.Card) float64 { return c.Took.Seconds() })},
		{group: "sample", name: "enflame_gcu_sample_timestamp_seconds", help: "When the last look at the card began, in seconds since 1970.", unit: "seconds", kind: gaugeKind, scope: cardLabels,
			of: looked(func(c *sampler.Card) float64 { return float64(c.At.UnixMilli()) / 1000 })},
	}
}

// looked tells of a card that was looked at.
func looked(of func(*sampler.Card) float64) func(*card, tell) {
	return func(c *card, t tell) {
		if !c.At.IsZero() {
			t(of(c.Card))
		}
	}
}

// baseUnits are older metrics once more, in the units that Prometheus recommends.
func baseUnits() []metric {
	list := []metric{
		{group: "power", name: "enflame_gcu_power_watts", help: "Power that the card draws.", unit: "watts", scope: holderLabels, fields: eflib.FieldPower,
			of: func(c *card, t tell) { known(c.Sample.PowerWatts, number, t) }},
		{group: "power", name: "enflame_gcu_power_limit_watts", help: "Power that the card may draw.", unit: "watts", scope: holderLabels, fields: eflib.FieldPower,
			of: func(c *card, t tell) { known(c.Sample.PowerCap, number, t) }},
		{group: "clock", name: "enflame_gcu_clock_hertz", help: "Clock of the processors (core) and of the memory.", unit: "hertz", scope: holderLabels, labels: []string{"domain"}, fields: eflib.FieldClock,
			of: func(c *card, t tell) {
				known(c.Sample.CoreMHz, megahertz, t, "core")
				known(c.Sample.HBMMHz, megahertz, t, "memory")
			}},
		{group: "usage", name: "enflame_gcu_usage_ratio", help: "How busy the card is, 0 to 1.", unit: "ratio", scope: holderLabels, fields: eflib.FieldUsage,
			of: func(c *card, t tell) { known(c.Sample.Usage, percent, t) }},
		{group: "sip_usage", name: "enflame_gcu_sip_usage_ratio", help: "How busy the processors are, 0 to 1.", unit: "ratio", scope: holderLabels, fields: eflib.FieldSIPUsage,
			of: func(c *card, t tell) { known(c.Sample.SIPUsage, percent, t) }},
		{group: "memory", name: "enflame_gcu_memory_usage_ratio", help: "Memory in use as a part of all, 0 to 1.", unit: "ratio", scope: holderLabels, fields: eflib.FieldMemory,
			of: memoryUsage},
	}
	for i := range list {
		list[i].kind, list[i].base = gaugeKind, true
	}
	return list
}

func megahertz(v float64) float64 { return v * 1e6 }
func percent(v float64) float64   { return v / 100 }
