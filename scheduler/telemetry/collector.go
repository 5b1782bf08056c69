package telemetry

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
)

// Collector is the collector of what a ledger says of all nodes.
type Collector struct {
	ledger func() *ledger.Ledger

	closed, memory, held, cards *prometheus.Desc
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns a collector; of may return nil while there is no ledger.
func New(of func() *ledger.Ledger) *Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gcu_scheduler_"+name, help, append([]string{"node"}, labels...), nil)
	}
	return &Collector{
		ledger: of,
		closed: desc("node_closed", "1 if the node takes no new pods that ask for cards, by reason; no series while it does.", "reason"),
		memory: desc("memory_bytes", "Memory of the node's cards that may be given out."),
		held:   desc("held_bytes", "Memory of the node's cards that is promised to pods."),
		cards:  desc("cards", "Cards of the node by what they are: free, shared, whole (one pod has all of it) or unusable (sick, cordoned or exchanged).", "state"),
	}
}

// reasons are the closures that somebody has to look at. A node without cards is none.
var reasons = map[placement.Closure]string{
	placement.BadDevices: "bad_devices", placement.BadRecord: "bad_record", placement.MissingRecord: "missing_record",
	placement.Overcommitted: "overcommitted", placement.CordonUnread: "cordon_unread",
}

var states = []string{"free", "shared", "whole", "unusable"}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.closed, c.memory, c.held, c.cards} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	l := c.ledger()
	if l == nil {
		return
	}
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	nodes := slices.SortedFunc(l.View().Nodes(), func(a, b *ledger.Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, n := range nodes {
		if reason, shut := reasons[n.Closed]; shut {
			send(c.closed, 1, n.Name, reason)
		}
		if len(n.Cards) == 0 {
			continue
		}
		var memory, held int64
		count := map[string]int{}
		for i := range n.Cards {
			card := &n.Cards[i]
			held = share.Add(held, card.UsedMiB)
			if card.Usable() {
				memory = share.Add(memory, card.TotalMiB)
			}
			count[stateOf(card)]++
		}
		send(c.memory, float64(memory)*(1<<20), n.Name)
		send(c.held, float64(held)*(1<<20), n.Name)
		for _, state := range states {
			send(c.cards, float64(count[state]), n.Name, state)
		}
	}
}

func stateOf(c *placement.Card) string {
	switch {
	case !c.Usable():
		return "unusable"
	case c.Whole:
		return "whole"
	case c.Free():
		return "free"
	}
	return "shared"
}
