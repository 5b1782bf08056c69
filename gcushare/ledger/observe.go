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
func (l *Ledger) Observe(pod *v1.Pod) Outcome { return l.observe(pod, false) }

func (l *Ledger) observe(pod *v1.Pod, known bool) Outcome {
	if !share.Asks(l.names, pod) {
		return Unchanged
	}
	freed := false
	switch {
	case Ended(pod):
		freed = l.release(pod.UID, known)
	case pod.Spec.NodeName == "":
		freed = l.settleFenced(pod)
	default:
		was, changed := l.confirm(ReadHolder(l.names, pod), known)
		return outcome(was, l.Holder(pod.UID), changed)
	}
	if freed {
		return Freed
	}
	return Unchanged
}

func outcome(was, now *Holder, changed bool) Outcome {
	switch {
	case !changed:
		return Unchanged
	case was != nil && now != nil && was.Node == now.Node && len(was.Charges()) > 0 && share.Lighter(now.Charges(), was.Charges()):
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

// Foresee takes in a pod as read apart from the complete, ordered stream of its events: from another
// listener's event, or by a request of its own. It only moves what is already held: a pod that the
// ordered stream has not charged yet, or has freed for good, is left alone, or an old reading could
// charge it for ever. deleted says that the pod is gone.
func (l *Ledger) Foresee(pod *v1.Pod, deleted bool) Outcome {
	if !deleted {
		return l.observe(pod, true)
	}
	if l.release(pod.UID, true) {
		return Freed
	}
	return Unchanged
}

// Ended says whether a pod holds nothing any more although it still exists.
func Ended(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// settleFenced frees a doubtful pod when it is seen unbound and changed after the version that its
// Binding names as precondition. The API server will then refuse that Binding for ever, even one that
// is still on its way. Versions are compared as numbers: the event may be older than the Binding.
func (l *Ledger) settleFenced(pod *v1.Pod) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.holderLocked(pod.UID)
	if h == nil || h.State != Doubtful || !Newer(pod.ResourceVersion, h.BindVersion) {
		return false
	}
	l.removeLocked(h)
	return true
}

// Newer says whether resource version a is later than b. Versions that are not numbers are never
// newer, so that nothing is decided by what cannot be compared.
func Newer(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x > y
}

// notAfter says whether resource version a is b or before it; false when they cannot be compared.
func notAfter(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x <= y
}

// ReadHolder reads a bound pod. What is wrong with its record makes it Unreadable, never an error.
func ReadHolder(names *contract.Names, pod *v1.Pod) *Holder {
	h := &Holder{
		UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName,
		Initialized: Initialized(pod), version: pod.ResourceVersion,
	}
	if pod.Spec.Priority != nil {
		h.Priority = *pod.Spec.Priority
	}
	limits, totals, err := share.Limits(names, pod)
	if err != nil {
		h.State, h.Problem = Unreadable, fmt.Sprintf("the pod's limits cannot be read: %v", err)
		return h
	}
	h.Totals, h.limits = totals, limits
	if _, static := pod.Annotations[v1.MirrorPodAnnotationKey]; static {
		h.State = Unreadable
		h.Problem = "a static pod asks for GCU, which static pods may not: take the limit out of its manifest on the node"
		return h
	}
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
		if !c.Kind.Fractional() && int64(len(cards)) != c.Amount {
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

// Initialized says whether a pod's init containers are done; its sidecars go on.
func Initialized(pod *v1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodInitialized {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
