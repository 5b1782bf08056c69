package gcufit

import (
	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/internal/contract"
)

// held is what one pod can have in use on a card at any time from now on, worked out from its record
// and its containers apart from the code under test.
type held struct {
	mib   int64
	whole bool
}

// holdings returns what a pod holds by card uuid.
func holdings(pod *v1.Pod, record string) map[string]held {
	a, err := contract.DecodeAllocation(record)
	if err != nil {
		return nil
	}
	cards := func(container string) []contract.CardAllocation {
		for _, c := range a.Containers {
			if c.Name == container {
				return c.Cards
			}
		}
		return nil
	}
	initialized := false
	for _, c := range pod.Status.Conditions {
		initialized = initialized || c.Type == v1.PodInitialized && c.Status == v1.ConditionTrue
	}
	stay, most, whole := map[string]int64{}, map[string]int64{}, map[string]bool{}
	for _, c := range pod.Spec.InitContainers {
		sidecar := c.RestartPolicy != nil
		for _, card := range cards(c.Name) {
			if sidecar {
				stay[card.UUID] += card.MemoryMiB
			}
			if sidecar || !initialized {
				now := stay[card.UUID]
				if !sidecar {
					now += card.MemoryMiB
				}
				most[card.UUID] = max(most[card.UUID], now)
				whole[card.UUID] = whole[card.UUID] || card.Whole
			}
		}
	}
	for _, c := range pod.Spec.Containers {
		for _, card := range cards(c.Name) {
			stay[card.UUID] += card.MemoryMiB
			most[card.UUID] = max(most[card.UUID], stay[card.UUID])
			whole[card.UUID] = whole[card.UUID] || card.Whole
		}
	}
	out := map[string]held{}
	for uuid, mib := range most {
		out[uuid] = held{mib, whole[uuid]}
	}
	return out
}

// checkBound runs when a Binding of ours is stored: what we bound so far must fit the cards, as they
// were made. What others did to a card is none of our promise.
func (w *world) checkBound(pod *v1.Pod) {
	if w.running[pod.UID] == "" {
		w.fail("pod %s was bound without a record", pod.Name)
	}
	for uuid := range holdings(pod, w.running[pod.UID]) {
		sum, holders, whole := int64(0), 0, false
		for _, p := range w.live(bound) {
			if !w.ours[p.UID] {
				continue
			}
			if h, ok := holdings(p, w.running[p.UID])[uuid]; ok {
				sum, holders, whole = sum+h.mib, holders+1, whole || h.whole
			}
		}
		if sum > cardMiB || whole && holders > 1 {
			w.fail("card %s is sold twice: %d of %d MiB by %d holders, whole %t", uuid, sum, cardMiB, holders, whole)
		}
	}
}

// checkRest compares the leader with the truth once everything was delivered and answered.
func (w *world) checkRest() {
	w.checkLedger(w.leader)
	for _, p := range w.live(unbound) {
		e := w.leader.entries[p.UID]
		if e == nil {
			w.fail("pod %s %s is pending and in no queue", p.Name, p.UID)
		} else if node := w.leader.wouldFit(e); e.state == sleeping && node != "" {
			w.fail("pod %s %s sleeps, though it fits node %s", p.Name, p.UID, node)
		}
	}
	w.checkOutside(w.leader.core.ledger)
}

// checkLedger wants a process at rest to know what the lists of the API say.
func (w *world) checkLedger(process *process) {
	l := process.core.ledger
	fresh := ledger.New(w.names)
	for _, n := range w.nodes {
		fresh.ObserveNode(n)
	}
	for _, p := range w.live(bound) {
		fresh.Observe(p)
		if process.overdue[p.UID] {
			fresh.MarkOverdue(p.UID)
		}
	}
	if got, want := l.Dump(), fresh.Dump(); got != want {
		w.fail("the ledger of %s at rest:\n%s\nwant, from the lists:\n%s", process.id, got, want)
	}
	if n := len(l.Doubtful()); n > 0 {
		w.fail("%d pods are in doubt at rest, and the settler of %s has nothing to do", n, process.id)
	}
}

// checkOutside wants a node closed when the records on it pass a card's present memory.
func (w *world) checkOutside(l *ledger.Ledger) {
	for name, m := range w.machines {
		n := l.Node(name)
		if n == nil || w.nodes[name] == nil {
			continue
		}
		for _, card := range m.devices().Devices {
			sum := int64(0)
			for _, p := range w.live(bound) {
				if p.Spec.NodeName == name {
					sum += holdings(p, p.Annotations[w.names.AllocationKey])[card.UUID].mib
				}
			}
			if i := n.Index(card.Minor); sum > card.MemoryMiB && n.Closed == 0 && i >= 0 && n.Cards[i].Usable() && n.Cards[i].FreeMiB() > 0 {
				w.fail("node %s takes new shares, though its records pass card %d: %d of %d MiB", name, card.Minor, sum, card.MemoryMiB)
			}
		}
	}
}
