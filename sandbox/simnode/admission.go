package simnode

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/topscloud/topscloud/internal/contract"
)

// refusal is why kubelet does not take a pod; the pod becomes Failed for good.
type refusal struct{ reason, message string }

// admit decides like kubelet whether a pod bound to the node can stay, given the pods already there.
func admit(pod *corev1.Pod, node *corev1.Node, capacity corev1.ResourceList, cards *nodeCards, others []*corev1.Pod, names *contract.Names) *refusal {
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err == nil && !ok {
		return &refusal{"NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"}
	}
	if limit := capacity.Pods().Value(); int64(len(others)) >= limit {
		return outOf("pods", 1, int64(len(others)), limit)
	}
	want := podRequests(pod)
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		q := want[name]
		if q.IsZero() {
			continue
		}
		var used int64
		for _, o := range others {
			r := podRequests(o)[name]
			used += r.MilliValue()
		}
		limit := capacity[name]
		if used+q.MilliValue() > limit.MilliValue() {
			return outOf(string(name), q.MilliValue(), used, limit.MilliValue())
		}
	}
	free, need := cards.free(), podUnits(pod, names)
	held := allocatable(units{}, others, names)
	for _, r := range []struct {
		name             string
		need, free, held int64
	}{
		{names.ResourceWhole, need.whole, free.whole, held.whole},
		{names.ResourceMemory, need.memory, free.memory, held.memory},
		{names.ResourceSlice, need.slices, free.slices, held.slices},
	} {
		if r.need > r.free {
			return outOf(r.name, r.need, r.held, r.held+r.free)
		}
	}
	return nil
}

func outOf(resource string, requested, used, capacity int64) *refusal {
	return &refusal{
		"OutOf" + resource,
		fmt.Sprintf("Pod was rejected: Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", resource, requested, used, capacity),
	}
}

// readmit decides after a restart of kubelet about a pod that ran before. A container on a failed or
// missing card cannot come back; after a reboot no GCU pod can, because kubelet admits before the
// device plugin has registered.
func readmit(pod *corev1.Pod, devices contract.NodeDevices, names *contract.Names, rebooted bool) *refusal {
	u := podUnits(pod, names)
	if u == (units{}) {
		return nil
	}
	resource, count := names.ResourceWhole, u.whole
	if u.memory > 0 {
		resource, count = names.ResourceMemory, u.memory
	} else if u.slices > 0 {
		resource, count = names.ResourceSlice, u.slices
	}
	refused := &refusal{
		"UnexpectedAdmissionError",
		fmt.Sprintf("Pod was rejected: Allocate failed due to requested number of devices unavailable for %s. Requested: %d, Available: 0, which is unexpected", resource, count),
	}
	if rebooted {
		return refused
	}
	record, err := contract.DecodeAllocation(pod.Annotations[names.AllocationKey])
	if err != nil {
		return nil
	}
	healthy := map[int]bool{}
	for _, d := range devices.Devices {
		healthy[d.Minor] = d.Health == ""
	}
	for _, c := range record.Containers {
		for _, card := range c.Cards {
			if !healthy[card.Minor] {
				return refused
			}
		}
	}
	return nil
}
