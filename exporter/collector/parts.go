package collector

import (
	"strconv"

	"github.com/topscloud/topscloud/eflib"
)

// parts are the metrics of what a card has several of: ports of the interconnect and vGCUs.
func parts() []metric {
	link := func(name, help string, of func(eflib.Link) int) metric {
		return metric{
			group: "interconnect", name: "enflame_gcu_interconnect_" + name, help: help, kind: gaugeKind, scope: cardLabels, labels: []string{"port"}, fields: eflib.FieldPorts,
			of: func(c *card, t tell) {
				ports, _ := c.Sample.Ports.Value()
				for _, p := range ports {
					known(p.Link, func(l eflib.Link) float64 { return float64(of(l)) }, t, strconv.Itoa(p.Number))
				}
			},
		}
	}
	virtual := func(name, help, unit string, tells func(eflib.VirtualDevice, tell, string)) metric {
		return metric{
			group: "vgcu", name: "enflame_vgcu_" + name, help: help, unit: unit, kind: gaugeKind, scope: holderLabels, labels: []string{"vindex"}, fields: eflib.FieldVirtualDevices, older: true,
			of: func(c *card, t tell) {
				list, _ := c.Sample.VirtualDevices.Value()
				for _, v := range list {
					tells(v, t, strconv.Itoa(v.Number))
				}
			},
		}
	}
	return []metric{
		{
			group: "interconnect", name: "enflame_gcu_interconnect_port_connected", help: "1 if a card is at the other end of the interconnect's port, else 0.",
			kind: gaugeKind, scope: cardLabels, labels: []string{"port", "remote_busid", "remote_port"}, fields: eflib.FieldPorts,
			of: func(c *card, t tell) {
				ports, _ := c.Sample.Ports.Value()
				for _, p := range ports {
					busID, port := "", ""
					if p.Connected {
						busID, port = p.Remote.String(), strconv.Itoa(p.RemotePort)
					}
					t(truth(p.Connected), strconv.Itoa(p.Number), busID, port)
				}
			},
		},
		link("link_generation", "Speed of the interconnect's link, by the driver's number.", func(l eflib.Link) int { return l.Generation }),
		link("max_link_generation", "Speed that the interconnect's link can have, by the driver's number.", func(l eflib.Link) int { return l.MaxGeneration }),
		link("link_width", "Lanes of the interconnect's link that are in use.", func(l eflib.Link) int { return l.Width }),
		link("max_link_width", "Lanes that the interconnect's link can have.", func(l eflib.Link) int { return l.MaxWidth }),
		{
			group: "vgcu", name: "enflame_vgcu_count", help: "vGCUs that the card is divided into.", kind: gaugeKind, scope: cardLabels, fields: eflib.FieldVirtualDevices, older: true,
			of: func(c *card, t tell) {
				known(c.Sample.VirtualDevices, func(list []eflib.VirtualDevice) float64 { return float64(len(list)) }, t)
			},
		},
		virtual("memory_total_bytes", "Memory of the vGCU.", "bytes", func(v eflib.VirtualDevice, t tell, own string) {
			known(v.Memory, func(m eflib.Memory) float64 { return float64(m.TotalBytes) }, t, own)
		}),
		virtual("memory_used_bytes", "Memory of the vGCU that is in use.", "bytes", func(v eflib.VirtualDevice, t tell, own string) {
			known(v.Memory, func(m eflib.Memory) float64 { return float64(m.UsedBytes) }, t, own)
		}),
		virtual("memory_usage", "Memory of the vGCU in use as a part of all, 0 to 1.", "ratio", func(v eflib.VirtualDevice, t tell, own string) {
			known(v.Memory, func(m eflib.Memory) float64 { return float64(m.UsedBytes) / float64(m.TotalBytes) }, t, own)
		}),
		virtual("usage", "How busy the vGCU is, in percent.", "percent", func(v eflib.VirtualDevice, t tell, own string) {
			known(v.Usage, number, t, own)
		}),
	}
}
