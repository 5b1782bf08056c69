package collector

import (
	"strconv"

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

// older are the card metrics of the vendor's exporter, by their names.
func older() []metric {
	list := []metric{
		{group: "clock", name: "enflame_gcu_clock", help: "Clock of the processors, in MHz.", unit: "MHz", kind: gaugeKind, scope: holderLabels, labels: []string{"power_mode"}, fields: eflib.FieldClock | eflib.FieldPowerMode,
			of: func(c *card, t tell) { known(c.Sample.CoreMHz, number, t, powerMode(c)) }},
		{group: "cluster_usage", name: "enflame_gcu_cluster_usage", help: "How busy each cluster of processors is, in percent.", unit: "percent", kind: gaugeKind, scope: holderLabels, labels: []string{"cluster", ownName}, fields: eflib.FieldClusterUsage,
			of: func(c *card, t tell) { each(c.Sample.ClusterUsage, t, "cluster_usage") }},
		{group: "ecc", name: "enflame_gcu_ecc_double_bit_error_total_count", help: "Memory errors that were not corrected, as the driver counts them; it may begin anew.", unit: "", kind: counterKind, scope: holderLabels, labels: []string{ownName}, fields: eflib.FieldECC,
			of: func(c *card, t tell) {
				known(c.Sample.ECC, func(e eflib.ECC) float64 { return float64(e.DoubleBit) }, t, "ecc_double_bit_error_total_count")
			}},
		{group: "ecc", name: "enflame_gcu_ecc_single_bit_error_total_count", help: "Memory errors that were corrected, as the driver counts them; it may begin anew.", unit: "", kind: counterKind, scope: holderLabels, labels: []string{ownName}, fields: eflib.FieldECC,
			of: func(c *card, t tell) {
				known(c.Sample.ECC, func(e eflib.ECC) float64 { return float64(e.SingleBit) }, t, "ecc_single_bit_error_total_count")
			}},
		{group: "health", name: "enflame_gcu_health", help: "Health of the card: 2 healthy, 1 unhealthy, 0 not known; healthmsg is the cause.", unit: "", kind: gaugeKind, scope: holderLabels, labels: []string{"healthmsg"}, fields: eflib.FieldHealth,
			of: func(c *card, t tell) {
				h := health(c)
				t(float64(h.State), h.Cause) // its numbers are the metric's
			}},
		{group: "memory", name: "enflame_gcu_memory_total_bytes", help: "Memory of the card.", unit: "bytes", kind: gaugeKind, scope: holderLabels, fields: eflib.FieldMemory,
			of: func(c *card, t tell) {
				known(c.Sample.Memory, func(m eflib.Memory) float64 { return float64(m.TotalBytes) }, t)
			}},
		{group: "memory", name: "enflame_gcu_memory_used_bytes", help: "Memory of the card that is in use.", unit: "bytes", kind: gaugeKind, scope: holderLabels, fields: eflib.FieldMemory,
			of: func(c *card, t tell) {
				known(c.Sample.Memory, func(m eflib.Memory) float64 { return float64(m.UsedBytes) }, t)
			}},
		{group: "memory", name: "enflame_gcu_memory_usage", help: "Memory in use as a part of all, 0 to 1.", unit: "ratio", kind: gaugeKind, scope: holderLabels, fields: eflib.FieldMemory,
			of: memoryUsage},
		{group: "pcie", name: "enflame_gcu_pcie_link_width", help: "Lanes of the PCIe link that are in use.", unit: "lanes", kind: gaugeKind, scope: holderLabels, labels: []string{ownName}, fields: eflib.FieldPCIeLink,
			of: func(c *card, t tell) {
				known(c.Sample.PCIeLink, func(l eflib.Link) float64 { return float64(l.Width) }, t, "pcie_link_width")
			}},
		{group: "pcie", name: "enflame_gcu_pcie_max_link_width", help: "Lanes that the PCIe link can have.", unit: "lanes", kind: gaugeKind, scope: holderLabels, labels: []string{ownName}, fields: eflib.FieldPCIeLink,
			of: func(c *card, t tell) {
				known(c.Sample.PCIeLink, func(l eflib.Link) float64 { return float64(l.MaxWidth) }, t, "pcie_max_link_width")
			}},
		{group: "pg_usage", name: "enflame_gcu_pg_usage", help: "How busy each processor group is, in percent.", unit: "percent", kind: gaugeKind, scope: holderLabels, labels: []string{"pg", ownName}, fields: eflib.FieldPGUsage,
			of: func(c *card, t tell) { each(c.Sample.PGUsage, t, "pg_usage") }},
		{group: "power", name: "enflame_gcu_power_capability", help: "Power that the card may draw, in W.", unit: "W", kind: gaugeKind, scope: holderLabels, fields: eflib.FieldPower,
			of: func(c *card, t tell) { known(c.Sample.PowerCap, number, t) }},
		{group: "power", name: "enflame_gcu_power_consumption", help: "Power that the card draws, in W.", unit: "W", kind: gaugeKind, scope: holderLabels, fields: eflib.FieldPower,
			of: func(c *card, t tell) { known(c.Sample.PowerWatts, number, t) }},
		{group: "power", name: "enflame_gcu_power_usage", help: "Power that the card draws, in percent of what it may draw.", unit: "percent", kind: gaugeKind, scope: holderLabels, fields: eflib.FieldPower,
			of: powerUsage},
		{group: "sip_usage", name: "enflame_gcu_sip_usage", help: "How busy the processors are, in percent.", unit: "percent", kind: gaugeKind, scope: holderLabels, fields: eflib.FieldSIPUsage,
			of: func(c *card, t tell) { known(c.Sample.SIPUsage, number, t) }},
		{group: "temperature", name: "enflame_gcu_temperatures", help: "Temperature of the processors' chip, in °C.", unit: "°C", kind: gaugeKind, scope: holderLabels, fields: eflib.FieldTemperature,
			of: func(c *card, t tell) { known(c.Sample.ASICCelsius, number, t) }},
		{group: "usage", name: "enflame_gcu_usage", help: "How busy the card is, in percent.", unit: "percent", kind: gaugeKind, scope: holderLabels, fields: eflib.FieldUsage,
			of: func(c *card, t tell) { known(c.Sample.Usage, number, t) }},
		{group: "virt_mode", name: "enflame_gcu_virt_mode", help: "How the card is divided: 0 not, 1 vGCU, 2 mdev, 3 SR-IOV physical function, 4 SR-IOV virtual function.", unit: "", kind: gaugeKind, scope: holderLabels, labels: []string{ownName}, fields: eflib.FieldVirtualization,
			of: func(c *card, t tell) {
				known(c.Sample.Virtualization, func(v eflib.Virtualization) float64 { return float64(v) }, t, "virt_mode")
			}},
	}
	for i := range list {
		list[i].older = true
	}
	return list
}

func memoryUsage(c *card, t tell) {
	if m, ok := c.Sample.Memory.Value(); ok && m.TotalBytes > 0 {
		t(float64(m.UsedBytes) / float64(m.TotalBytes))
	}
}

// powerUsage is at most 100: a card may draw more than its limit for a moment.
func powerUsage(c *card, t tell) {
	draws, ok := c.Sample.PowerWatts.Value()
	if limit, known := c.Sample.PowerCap.Value(); ok && known && limit > 0 {
		t(min(100, 100*draws/limit))
	}
}
