package main

import "strings"

// card is for those who look after machines: one node's cards in detail.
var card = board{
	uid: "gcu-card", title: "GCU / Node and card",
	about: "The cards of one node, one by one.",
	variables: []variable{
		{name: "host", title: words{"Node", "节点"}, query: "label_values(enflame_gcu_exporter_up, host)"},
		{name: "card", title: words{"Card", "卡号"}, query: `label_values(enflame_gcu_up{host="$host"}, minor_number)`, all: true},
	},
	panels: []panel{
		{kind: line, title: words{"How busy", "利用率"}, unit: "percent", width: 12, height: 8, min: zero, max: hundred,
			queries: []query{{each("enflame_gcu_usage"), number}}},
		{kind: line, title: words{"Memory in use", "已用显存"}, unit: "bytes", width: 12, height: 8, min: zero,
			queries: []query{{each("enflame_gcu_memory_used_bytes"), number}}},
		{kind: line, title: words{"Temperature", "温度"}, unit: "celsius", width: 12, height: 8,
			queries: []query{{each("enflame_gcu_temperature_celsius", "sensor"), number + " {{sensor}}"}}},
		{kind: line, title: words{"Power", "功率"}, unit: "watt", width: 12, height: 8, min: zero,
			queries: []query{{each("enflame_gcu_power_consumption"), number}, {each("enflame_gcu_power_capability"), number + " limit"}}},
		{kind: line, title: words{"Clock", "频率"}, unit: "rotmhz", width: 12, height: 8, min: zero,
			queries: []query{{each("enflame_gcu_clock", "power_mode"), number + " {{power_mode}}"}}},
		{kind: line, title: words{"Energy in the last hour", "近一小时能耗"}, unit: "joule", width: 12, height: 8, min: zero,
			queries: []query{{`increase(` + of("enflame_gcu_energy_joules_total") + `[1h])`, number}}},
		{kind: line, title: words{"Memory errors, all so far", "ECC 错误累计"}, unit: "none", width: 12, height: 8, min: zero,
			queries: []query{{each("enflame_gcu_ecc_single_bit_error_total_count"), number + " corrected"}, {each("enflame_gcu_ecc_double_bit_error_total_count"), number + " not corrected"}}},
		{kind: line, title: words{"Error records in the last hour", "近一小时错误记录"}, unit: "none", width: 12, height: 8, min: zero,
			queries: []query{{`increase(` + of("enflame_gcu_error_records_total") + `[1h])`, number + " {{class}}"}}},
		{kind: line, title: words{"PCIe lanes", "PCIe 链路宽度"}, unit: "none", width: 12, height: 8, min: zero,
			queries: []query{{each("enflame_gcu_pcie_link_width"), number}, {each("enflame_gcu_pcie_max_link_width"), number + " at most"}}},
		{kind: line, title: words{"PCIe traffic", "PCIe 流量"}, unit: "none", width: 12, height: 8, min: zero,
			about:   "In the driver's unit, which is not published; the vendor's tool prints MiB/s.",
			queries: []query{{each("enflame_gcu_pcie_throughput", "direction"), number + " {{direction}}"}}},
		{kind: line, title: words{"Interconnect ports that are joined", "互联已连接端口数"}, unit: "none", width: 12, height: 8, min: zero,
			queries: []query{{`sum by (minor_number) (` + of("enflame_gcu_interconnect_port_connected") + `)`, number}}},
		{kind: line, title: words{"How long a look at the card takes", "采样耗时"}, unit: "s", width: 12, height: 8, min: zero,
			queries: []query{{each("enflame_gcu_sample_duration_seconds"), number}}},
		{kind: list, title: words{"Who holds the cards", "卡的占用者"}, unit: "bytes", width: 24, height: 8,
			hidden:  []string{"__name__", "instance", "job", "busid", "slot", "host"},
			queries: []query{{of("enflame_gcu_allocation_bytes"), ""}}},
		{kind: list, title: words{"Processes on the cards", "卡上的进程"}, unit: "bytes", width: 24, height: 8,
			about:   "Told where the exporter sees the host's processes.",
			hidden:  []string{"__name__", "instance", "job", "busid", "slot", "host"},
			queries: []query{{of("enflame_gcu_process_memory_bytes"), ""}}},
	},
}

const number = "{{minor_number}}"

func of(metric string) string { return metric + `{host="$host", minor_number=~"$card"}` }

// each is a line for each card, and each of some labels: a card keeps its line when it gets another holder, whose name
// is among the labels.
func each(metric string, labels ...string) string {
	return "max by (" + strings.Join(append([]string{"minor_number"}, labels...), ", ") + ") (" + of(metric) + ")"
}
