package collector

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/exporter/sampler"
)

// about are the metrics of the host and of what each card is.
func about() []metric {
	return []metric{
		{name: "enflame_gcu_exporter_up", help: "1 if the host's cards can be seen, else 0.", kind: gaugeKind, scope: hostLabels, older: true,
			ofHost: func(s *scrape, t tell) { t(truth(s.seen)) }},
		{name: "enflame_gcu_up", help: "1 if the card answered when it was last asked, else 0.", kind: gaugeKind, scope: cardLabels,
			of: func(c *card, t tell) { t(truth(c.Err == nil)) }},
		{name: "enflame_gcu_implausible_readings", help: "Readings of the last look that cannot be true and are left out.", kind: gaugeKind, scope: cardLabels,
			of: func(c *card, t tell) {
				if c.Err == nil {
					t(float64(c.Implausible))
				}
			}},
		{name: "enflame_gcu_colliding_cards", help: "Cards whose minor, uuid or bus id another card has too.", kind: gaugeKind, scope: hostLabels,
			ofHost: func(s *scrape, t tell) { t(float64(s.colliding)) }},
		{group: groupCount, name: "enflame_gcu_count", help: "Cards of the host.", kind: gaugeKind, scope: hostLabels, older: true,
			ofHost: func(s *scrape, t tell) {
				if s.seen {
					t(float64(len(s.host.Cards)))
				}
			}},
		{group: groupInfo, name: "enflame_gcu_info", help: "Always 1; the labels say which card it is.", kind: gaugeKind, scope: hostLabels, older: true,
			labels: []string{"minor_number", "uuid", "slot", "dev_sn", "fw_version"}, fields: eflib.FieldIdentity, of: tellInfo},
		{group: groupProcesses, name: "enflame_gcu_process_mapping_available", help: "1 if the host's processes can be seen, else 0: then nothing is told of processes, nor of what pods use.",
			kind: gaugeKind, scope: hostLabels, fields: eflib.FieldProcesses,
			ofHost: func(s *scrape, t tell) { t(truth(s.host.ProcessesErr == nil)) }},
		{group: Allocation, name: "enflame_gcu_attribution_up", help: "1 if the source says who holds what, else 0: then no series carries a pod.", kind: gaugeKind, scope: hostLabels, labels: []string{"source"},
			ofHost: func(s *scrape, t tell) {
				t(truth(s.owners.Agent == nil), "agent")
				t(truth(s.owners.Kubelet == nil), "kubelet")
			}},
		{group: Allocation, name: "enflame_gcu_unattributed_devices", help: "Devices of a resource that kubelet gave a container and the node agent knows no card of.", kind: gaugeKind, scope: hostLabels,
			labels: []string{"resource", "pod_name", "pod_namespace", "container_name"},
			ofHost: func(s *scrape, t tell) {
				for _, o := range s.owners.Others {
					t(float64(o.Count), o.Resource, o.Pod, o.Namespace, o.Container)
				}
			}},
	}
}

// tellInfo tells of two cards that are called the same in everything once.
func tellInfo(c *card, t tell) {
	if c.twin {
		return
	}
	serial := c.Identity.SerialNumber
	if serial == "" {
		serial = c.Device.SerialNumber
	}
	t(1, c.minor, c.Device.UUID, c.Identity.Slot, serial, c.Identity.Firmware)
}

// nameOf is the card's name as the library tells it ("Enflame T10"), made from its model where it does not.
func nameOf(s *sampler.Card) string {
	if s.Identity.Name == "" && s.Device.Model != "" {
		return "Enflame " + s.Device.Model
	}
	return s.Identity.Name
}

const (
	failuresName = "enflame_gcu_attribution_failures_total"
	failuresHelp = "Times that the agent or kubelet did not say who holds what, by source."
)

// NewFailures returns the counter of attribution's failures, which goes with group Allocation.
func NewFailures() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: failuresName, Help: failuresHelp}, []string{"source"})
}
