package ledger

import (
	"fmt"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// Outcome says what an observed pod did to the ledger.
type Outcome uint8

// The outcomes. Freed and Charged may have changed what fits on the pod's node.
const (
	Unchanged Outcome = iota
	Charged
	Freed
)

// Observe takes in a pod as the API shows it: bound pods are charged by their record, ended ones are
// released, and an unbound one settles a doubtful Binding of it that can no longer be stored. Pods
// that ask for no GCU are ignored.
func (l *Ledger) Observe(pod *v1.Pod) Outcome {
	if !share.Asks(l.names, pod) {
		return Unchanged
	}
	if Ended(pod) {
		if l.Release(pod.UID) {
			return Freed
		}
		return Unchanged
	}
	if pod.Spec.NodeName == "" {
		if l.fenced(pod) && l.Settle(pod.UID) {
			return Freed
		}
		return Unchanged
	}
	was := l.Holder(pod.UID)
	h := ReadHolder(l.names, pod)
	if !l.confirm(h) {
		return Unchanged
	}
	if was != nil && was.Node == h.Node && len(was.Charges()) > 0 && lighter(h.Charges(), was.Charges()) {
		return Freed
	}
	return Charged
}

// ObserveNode takes in a node as the API shows it. It reports whether anything changed.
func (l *Ledger) ObserveNode(node *v1.Node) bool {
	l.mu.Lock()
	var prev *Capacity
	if s, ok := l.slots[node.Name]; ok {
		prev = s.capacity
	}
	l.mu.Unlock()
	return l.SetCapacity(ReadCapacity(l.names, node, prev))
}

// Foresee takes in a pod event ahead of the caller that sees the complete, ordered stream of them, for
// a reader that must judge by it now. It only moves what is already held: a pod that the ordered stream
// has not charged yet, or has freed for good, is left alone, or an old event could charge it for ever.
// deleted says that the pod is gone.
func (l *Ledger) Foresee(pod *v1.Pod, deleted bool) {
	switch {
	case l.Holder(pod.UID) == nil:
	case deleted:
		l.Release(pod.UID)
	default:
		l.Observe(pod)
	}
}

// Ended says whether a pod holds nothing any more although it still exists.
func Ended(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// fenced says whether an unbound pod was changed after the version that its doubtful Binding names as
// precondition. The API server will then refuse that Binding for ever, even one that is still on its
// way. Versions are compared as numbers: the event may be older than the Binding.
func (l *Ledger) fenced(pod *v1.Pod) bool {
	h := l.Holder(pod.UID)
	return h != nil && h.State == Doubtful && Newer(pod.ResourceVersion, h.BindVersion)
}

// Newer says whether resource version a is later than b. Versions that are not numbers are never
// newer, so that nothing is decided by what cannot be compared.
func Newer(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x > y
}

// ReadHolder reads a bound pod. What is wrong with its record makes it Unreadable, never an error.
func ReadHolder(names *contract.Names, pod *v1.Pod) *Holder {
	h := &Holder{
		UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName,
		Initialized: initialized(pod), version: pod.ResourceVersion,
	}
	if pod.Spec.Priority != nil {
		h.Priority = *pod.Spec.Priority
	}
	limits, totals, err := share.Limits(names, pod)
	if err != nil {
		h.State, h.Problem = Unreadable, fmt.Sprintf("the pod's limits cannot be read: %v", err)
		return h
	}
	h.Totals = totals
	text, ok := pod.Annotations[names.AllocationKey]
	if !ok {
		h.State = Unrecorded
		h.request = &share.Request{Containers: limits, Totals: totals}
		return h
	}
	record, err := contract.DecodeAllocation(text)
	if err == nil {
		err = matches(record, h.Node, limits)
	}
	if err != nil {
		h.State, h.Problem = Unreadable, fmt.Sprintf("annotation %s: %v", names.AllocationKey, err)
		return h
	}
	h.State, h.Containers = Bound, record.Containers
	h.holds = holdsOf(limits, record.Containers)
	h.recharge()
	return h
}

// matches compares a record with the pod that carries it: a record copied from another pod, or written
// for another node, tells nothing about this one.
func matches(record *contract.Allocation, node string, limits []share.Container) error {
	if record.Node != node {
		return fmt.Errorf("it is for node %s, the pod runs on %s", record.Node, node)
	}
	if len(record.Containers) != len(limits) {
		return fmt.Errorf("it has %d containers, %d ask for GCU", len(record.Containers), len(limits))
	}
	for i := range limits {
		c := &limits[i]
		at := slices.IndexFunc(record.Containers, func(a contract.ContainerAllocation) bool { return a.Name == c.Name })
		if at < 0 {
			return fmt.Errorf("container %s is not in it", c.Name)
		}
		cards := record.Containers[at].Cards
		if c.Kind == share.Whole && int64(len(cards)) != c.Amount {
			return fmt.Errorf("container %s has %d cards in it, %d asked", c.Name, len(cards), c.Amount)
		}
		for _, card := range cards {
			if card.Whole == c.Kind.Fractional() {
				return fmt.Errorf("container %s, card %d: whole and shared are mixed up", c.Name, card.Minor)
			}
		}
	}
	return nil
}

func initialized(pod *v1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodInitialized {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}

// lighter says whether no card is charged more in a than in b, and some less.
func lighter(a, b []share.Charge) bool {
	less := len(a) < len(b)
	for _, ca := range a {
		i := slices.IndexFunc(b, func(cb share.Charge) bool { return cb.Minor == ca.Minor })
		if i < 0 || ca.MiB > b[i].MiB || ca.Whole && !b[i].Whole {
			return false
		}
		less = less || ca.MiB < b[i].MiB || b[i].Whole && !ca.Whole
	}
	return less
}
