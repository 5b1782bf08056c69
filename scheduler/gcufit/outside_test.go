package gcufit

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

var objectMetaTime = metav1.NewTime(time.Unix(1, 0))

// bindElsewhere is another scheduler that binds a pod without a record.
func (w *world) bindElsewhere() {
	pod := w.pick(w.live(func(p *v1.Pod) bool { return unbound(p) && p.DeletionTimestamp == nil }))
	if pod != nil {
		node := []string{"n0", "n1", "n2"}[w.rng.IntN(3)]
		w.note("another scheduler binds %s %s to %s", pod.Name, pod.UID, node)
		w.write(pod, func(p *v1.Pod) { p.Spec.NodeName = node })
	}
}

func (w *world) unrecorded(p *v1.Pod) bool {
	return bound(p) && p.Annotations[w.names.AllocationKey] == ""
}

// recordElsewhere is a node's agent that records a pod on cards of its own choice, good or bad.
func (w *world) recordElsewhere() {
	pod := w.pick(w.live(w.unrecorded))
	if pod == nil {
		return
	}
	limits, _, err := share.Limits(w.names, pod)
	if err != nil {
		w.fail("limits of %s: %v", pod.Name, err)
		return
	}
	m := w.machines[pod.Spec.NodeName]
	a := contract.Allocation{Node: m.name}
	for _, c := range limits {
		entry := contract.ContainerAllocation{Name: c.Name}
		for i := range min(c.Cards, len(m.cards)) {
			card := m.cards[(i+w.rng.IntN(2))%len(m.cards)]
			if i == 1 && entry.Cards[0].Minor == card.Minor {
				card = m.cards[(card.Minor+1)%len(m.cards)]
			}
			entry.Cards = append(entry.Cards, contract.CardAllocation{
				Minor: card.Minor, UUID: card.UUID, Whole: c.Kind == share.Whole,
				MemoryMiB: max(c.PerCardMiB(cardMiB, m.unit, 4), 1),
			})
		}
		a.Containers = append(a.Containers, entry)
	}
	text, err := contract.EncodeAllocation(a)
	if err != nil {
		w.fail("record of %s: %v", pod.Name, err)
		return
	}
	w.note("an agent records %s %s", pod.Name, pod.UID)
	w.recorded(pod.UID)
	w.write(pod, func(p *v1.Pod) { p.Annotations[w.names.AllocationKey] = text })
}

// expire is the time limit of a missing record, for a pod that the leader has seen without one.
func (w *world) expire() {
	pod := w.pick(w.live(w.unrecorded))
	if pod == nil {
		return
	}
	w.note("%s %s is overdue", pod.Name, pod.UID)
	w.leader.core.feed.Expire(pod.UID)
	if h := w.leader.core.ledger.Holder(pod.UID); h != nil && h.Overdue {
		w.leader.overdue[pod.UID] = true
	}
}

// recorded ends the time limit of a pod's missing record, for all that count it.
func (w *world) recorded(uid types.UID) {
	for _, p := range w.alive() {
		delete(p.overdue, uid)
	}
}

// garble makes a running pod's record unreadable, in one of the ways of the field.
func (w *world) garble() {
	pod := w.pick(w.live(func(p *v1.Pod) bool { return w.ours[p.UID] }))
	if pod == nil {
		return
	}
	text := []string{"", "{", `{"version":"v9"}`, `{"version":"v1","node":"n9","containers":[]}`, pod.Annotations[w.names.AllocationKey] + "x"}[w.rng.IntN(5)]
	w.note("the record of %s %s is garbled", pod.Name, pod.UID)
	if text == "" {
		// A pod without a record is charged to the emptiest cards, which need not be its own.
		delete(w.ours, pod.UID)
		w.write(pod, func(p *v1.Pod) { delete(p.Annotations, w.names.AllocationKey) })
		return
	}
	w.write(pod, func(p *v1.Pod) { p.Annotations[w.names.AllocationKey] = text })
}

// repair gives a pod its record back.
func (w *world) repair() {
	pod := w.pick(w.live(func(p *v1.Pod) bool {
		record := w.running[p.UID]
		return record != "" && p.Annotations[w.names.AllocationKey] != record && w.ours[p.UID]
	}))
	if pod != nil {
		w.note("the record of %s %s is repaired", pod.Name, pod.UID)
		w.write(pod, func(p *v1.Pod) { p.Annotations[w.names.AllocationKey] = w.running[p.UID] })
	}
}
