package collector

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/topscloud/topscloud/eflib"
)

var powerModes = map[eflib.PowerMode]string{eflib.PowerActive: "Active", eflib.PowerSuspend: "Suspend", eflib.PowerSleep: "Sleep"}

// powerMode is the name of a card's power mode, its number where it has no known name, empty where it is not told.
func powerMode(c *card) string {
	mode, ok := c.Sample.PowerMode.Value()
	if !ok {
		return ""
	}
	if name, known := powerModes[mode]; known {
		return name
	}
	return strconv.Itoa(int(mode))
}

// health is the health of a card with its cause in steady words.
func health(c *card) eflib.Health {
	if c.Err != nil {
		return eflib.UnknownHealth(c.Err)
	}
	h, err := c.Sample.Health.Get()
	if err != nil {
		return eflib.UnknownHealth(err)
	}
	return h
}

const ownName = "metrics" // the label that holds the metric's own short name

// older are the metrics of the vendor's exporter, by their names.
func older() []metric {
	const gaugeKind, counterKind = prometheus.GaugeValue, prometheus.CounterValue
	return []metric{
		{group: "clock", name: "clock", help: "Clock of the processors, in MHz.", kind: gaugeKind, labels: []string{"power_mode"},
			of: func(c *card) []point { return gauge(c.Sample.CoreMHz, number, powerMode(c)) }},
		{group: "cluster_usage", name: "cluster_usage", help: "How busy each cluster of processors is, in percent.", kind: gaugeKind, labels: []string{"cluster", ownName},
			of: func(c *card) []point { return each(c.Sample.ClusterUsage, "cluster_usage") }},
		{group: "ecc", name: "ecc_double_bit_error_total_count", help: "Memory errors that were not corrected, as the driver counts them; it may begin anew.", kind: counterKind, labels: []string{ownName},
			of: func(c *card) []point {
				return gauge(c.Sample.ECC, func(e eflib.ECC) float64 { return float64(e.DoubleBit) }, "ecc_double_bit_error_total_count")
			}},
		{group: "ecc", name: "ecc_single_bit_error_total_count", help: "Memory errors that were corrected, as the driver counts them; it may begin anew.", kind: counterKind, labels: []string{ownName},
			of: func(c *card) []point {
				return gauge(c.Sample.ECC, func(e eflib.ECC) float64 { return float64(e.SingleBit) }, "ecc_single_bit_error_total_count")
			}},
		{group: "health", name: "health", help: "Health of the card: 2 healthy, 1 unhealthy, 0 not known; healthmsg is the cause.", kind: gaugeKind, labels: []string{"healthmsg"},
			of: func(c *card) []point {
				h := health(c)
				return []point{{float64(h.State), []string{h.Cause}}} // its numbers are the metric's
			}},
		{group: "memory", name: "memory_total_bytes", help: "Memory of the card.", kind: gaugeKind,
			of: func(c *card) []point {
				return gauge(c.Sample.Memory, func(m eflib.Memory) float64 { return float64(m.TotalBytes) })
			}},
		{group: "memory", name: "memory_used_bytes", help: "Memory of the card that is in use.", kind: gaugeKind,
			of: func(c *card) []point {
				return gauge(c.Sample.Memory, func(m eflib.Memory) float64 { return float64(m.UsedBytes) })
			}},
		{group: "memory", name: "memory_usage", help: "Memory in use as a part of all, 0 to 1.", kind: gaugeKind, of: memoryUsage},
		{group: "pcie", name: "pcie_link_width", help: "Lanes of the PCIe link that are in use.", kind: gaugeKind, labels: []string{ownName},
			of: func(c *card) []point {
				return gauge(c.Sample.PCIeLink, func(l eflib.Link) float64 { return float64(l.Width) }, "pcie_link_width")
			}},
		{group: "pcie", name: "pcie_max_link_width", help: "Lanes that the PCIe link can have.", kind: gaugeKind, labels: []string{ownName},
			of: func(c *card) []point {
				return gauge(c.Sample.PCIeLink, func(l eflib.Link) float64 { return float64(l.MaxWidth) }, "pcie_max_link_width")
			}},
		{group: "pg_usage", name: "pg_usage", help: "How busy each processor group is, in percent.", kind: gaugeKind, labels: []string{"pg", ownName},
			of: func(c *card) []point { return each(c.Sample.PGUsage, "pg_usage") }},
		{group: "power", name: "power_capability", help: "Power that the card may draw, in W.", kind: gaugeKind,
			of: func(c *card) []point { return gauge(c.Sample.PowerCap, number) }},
		{group: "power", name: "power_consumption", help: "Power that the card draws, in W.", kind: gaugeKind,
			of: func(c *card) []point { return gauge(c.Sample.PowerWatts, number) }},
		{group: "power", name: "power_usage", help: "Power that the card draws, in percent of what it may draw.", kind: gaugeKind, of: powerUsage},
		{group: "sip_usage", name: "sip_usage", help: "How busy the processors are, in percent.", kind: gaugeKind,
			of: func(c *card) []point { return gauge(c.Sample.SIPUsage, number) }},
		{group: "temperature", name: "temperatures", help: "Temperature of the processors' chip, in °C.", kind: gaugeKind,
			of: func(c *card) []point { return gauge(c.Sample.ASICCelsius, number) }},
		{group: "usage", name: "usage", help: "How busy the card is, in percent.", kind: gaugeKind,
			of: func(c *card) []point { return gauge(c.Sample.Usage, number) }},
		{group: "virt_mode", name: "virt_mode", help: "How the card is divided: 0 not, 1 vGCU, 2 mdev, 3 SR-IOV physical function, 4 SR-IOV virtual function.", kind: gaugeKind, labels: []string{ownName},
			of: func(c *card) []point {
				return gauge(c.Sample.Virtualization, func(v eflib.Virtualization) float64 { return float64(v) }, "virt_mode")
			}},
	}
}

func memoryUsage(c *card) []point {
	m, ok := c.Sample.Memory.Value()
	if !ok || m.TotalBytes <= 0 {
		return nil
	}
	return []point{{value: float64(m.UsedBytes) / float64(m.TotalBytes)}}
}

// powerUsage is at most 100: a card may draw more than its limit for a moment.
func powerUsage(c *card) []point {
	draws, ok := c.Sample.PowerWatts.Value()
	limit, known := c.Sample.PowerCap.Value()
	if !ok || !known || limit <= 0 {
		return nil
	}
	return []point{{value: min(100, 100*draws/limit)}}
}
