package gcufit

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/internal/contract"
)

// cardMiB is the memory every card of the model was made with.
const cardMiB = 16 << 10

// machine is the hardware and the settings below a Node object.
type machine struct {
	name     string
	cards    []contract.NodeDevice
	absent   []bool
	unit     int64
	private  bool   // without the sharing label
	garbled  bool   // the device annotation is unreadable
	cordoned string // text of the cordon annotation
	incident int    // counts swaps, for new uuids
}

func (w *world) addMachine(name string) {
	m := &machine{name: name, unit: 1024}
	for i := range 2 + w.rng.IntN(3) {
		c := ledgertest.Card(name, i, cardMiB)
		c.Bridges = []string{fmt.Sprintf("0000:%02x:00.0", i/2), "pci0000:00"}
		m.cards = append(m.cards, c)
	}
	m.absent = make([]bool, len(m.cards))
	w.machines[name] = m
	w.publish(m, true)
}

func (m *machine) devices() contract.NodeDevices {
	d := contract.NodeDevices{MemoryUnitMiB: m.unit, SliceCount: 4}
	for i, c := range m.cards {
		if !m.absent[i] {
			d.Devices = append(d.Devices, c)
		}
	}
	return d
}

// publish writes the machine's Node object; create makes it anew if it is not there.
func (w *world) publish(m *machine, create bool) {
	if w.nodes[m.name] == nil && !create {
		return
	}
	n := ledgertest.NodeOf(m.name, m.devices())
	n.Labels["pool"] = m.name
	n.UID = ""
	if m.private {
		delete(n.Labels, w.names.SharingLabel)
	}
	if m.garbled {
		n.Annotations[w.names.DevicesKey] += "?"
	}
	if m.cordoned != "" {
		n.Annotations[w.names.CordonKey] = m.cordoned
	}
	n.ResourceVersion = w.version()
	w.nodes[m.name] = n
	w.nodeLog = append(w.nodeLog, change{n, false})
}

// mutate does to a machine what happens to machines.
func (w *world) mutate() {
	names := []string{"n0", "n1", "n2"}
	m := w.machines[names[w.rng.IntN(len(names))]]
	i := w.rng.IntN(len(m.cards))
	card := &m.cards[i]
	what := ""
	switch w.rng.IntN(16) {
	case 0, 1:
		if what = "heals"; card.Health == "" {
			what, card.Health = "falls ill", "ecc"
		} else {
			card.Health = ""
		}
	case 2, 3:
		m.absent[i], what = !m.absent[i], "goes or returns"
	case 4:
		m.incident++
		card.UUID, what = fmt.Sprintf("GCU-%s-%d-%d", m.name, i, m.incident), "is exchanged"
	case 5, 6:
		m.unit, what = []int64{1024, 512, 102, 2048}[w.rng.IntN(4)], "gets another unit"
	case 7, 8:
		m.private, what = !m.private, "changes its sharing label"
	case 9, 10:
		if what = "is cordoned"; m.cordoned != "" {
			m.cordoned, what = "", "is open again"
		} else if m.cordoned = fmt.Sprintf(`{"version":"v1","cards":[{"minor":%d}]}`, i); w.chance(20) {
			m.cordoned, what = "{", "gets a bad cordon"
		}
	case 11:
		m.garbled, what = !m.garbled, "changes the readability of its annotation"
	case 12:
		what = "changes its memory"
		if card.MemoryMiB = cardMiB - 2048; w.chance(50) {
			card.MemoryMiB = cardMiB
		}
	default:
		w.deleteOrCreateNode(m)
		return
	}
	w.note("node %s card %d %s", m.name, i, what)
	w.publish(m, false)
}

func (w *world) deleteOrCreateNode(m *machine) {
	node, ok := w.nodes[m.name]
	if !ok {
		w.note("node %s is made", m.name)
		w.publish(m, true)
		return
	}
	w.note("node %s is deleted", m.name)
	w.deleteNode(node)
	if w.chance(50) {
		w.publish(m, true)
	}
}

func (w *world) deleteNode(node *v1.Node) {
	delete(w.nodes, node.Name)
	last := node.DeepCopy()
	last.ResourceVersion = w.version()
	w.nodeLog = append(w.nodeLog, change{last, true})
}

// mend makes every machine as it was made, so that a world at rest is not closed for good.
func (w *world) mend() {
	for _, name := range []string{"n0", "n1", "n2"} {
		m := w.machines[name]
		if m == nil {
			continue
		}
		m.private, m.garbled, m.cordoned = false, false, ""
		for i := range m.cards {
			m.absent[i], m.cards[i].Health, m.cards[i].MemoryMiB = false, "", cardMiB
		}
		w.publish(m, true)
	}
}
