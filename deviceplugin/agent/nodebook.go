package agent

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

var kindNames = map[share.Kind]string{share.Whole: nodebook.Whole, share.Memory: nodebook.Memory, share.Slices: nodebook.Slices, share.Alias: nodebook.Whole}

// tellBook tells the node's other programs who holds what now.
func (a *Agent) tellBook(book contract.Book) {
	a.mu.Lock()
	units, cards := a.units, a.report.Cards
	a.mu.Unlock()
	out := nodebook.Book{
		Node: a.o.Node, MemoryUnitMiB: units.UnitMiB, SliceCount: units.SliceCount,
		Holdings: holdings(a.o.Names, book, placeIn(cards), a.pods.Cached),
	}
	changed, err := a.book.Set(out)
	switch {
	case err != nil:
		a.logger.Error(err, "Who holds what cannot be told")
	case changed:
		a.logger.V(2).Info("Holdings changed", "holdings", len(out.Holdings))
	}
}

// holdings are the cards of the containers that may still use them. A pod that is not there any more, has ended,
// or whose container has ended for good, holds nothing, though the book keeps its tickets until kubelet has
// forgotten them too.
func holdings(names *contract.Names, book contract.Book, place func(minor int, uuid string) string, cached func(types.UID) *v1.Pod) []nodebook.Holding {
	kinds := map[string]share.Kind{}
	for k := range share.Kind(share.Kinds) {
		if name := k.Resource(names); name != "" {
			kinds[name] = k
		}
	}
	type key struct {
		minor          int
		pod, container string
	}
	seen := map[key]bool{}
	var out []nodebook.Holding
	for _, t := range book.Tickets {
		kind, ours := kinds[t.Resource]
		if t.PodUID == "" || !ours {
			continue
		}
		pod := cached(types.UID(t.PodUID))
		if pod == nil || ledger.Ended(pod) || endedForGood(pod, t.Container) {
			continue
		}
		for _, c := range t.Cards {
			at := key{c.Minor, t.PodUID, t.Container}
			if seen[at] {
				continue // a second ticket of the same container is for the same cards
			}
			seen[at] = true
			out = append(out, nodebook.Holding{
				Minor: c.Minor, UUID: c.UUID, PCIBusID: place(c.Minor, c.UUID),
				PodUID: t.PodUID, Namespace: pod.Namespace, Pod: pod.Name,
				Container: t.Container, Resource: t.Resource, Kind: kindNames[kind], MemoryMiB: c.MemoryMiB,
			})
		}
	}
	nodebook.Sort(out)
	return out
}

// placeIn returns how to find where a card is. It is told only of a card that is there: one that is gone may have
// another in its place.
func placeIn(cards []health.Card) func(minor int, uuid string) string {
	return func(minor int, uuid string) string {
		for i := range cards {
			d := &cards[i].Device // as it was seen last: a card that is remembered under its uuid may be another by now
			if cards[i].Present && d.Minor == minor && d.UUID != "" && contract.NormalUUID(d.UUID) == contract.NormalUUID(uuid) {
				return d.PCIAddress.String()
			}
		}
		return ""
	}
}

// endedForGood says whether a container has ended and kubelet does not start it again.
func endedForGood(pod *v1.Pod, container string) bool {
	init := false
	policy := pod.Spec.RestartPolicy
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.Name == container {
			sidecar := c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
			init = !sidecar
			if sidecar {
				policy = v1.RestartPolicyAlways
			}
		}
	}
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == container && c.RestartPolicy != nil {
			policy = v1.RestartPolicy(*c.RestartPolicy)
		}
	}
	if init && ledger.Initialized(pod) {
		return true
	}
	for _, list := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			s := &list[i]
			if s.Name != container || s.State.Terminated == nil {
				continue
			}
			if s.State.Terminated.ExitCode == 0 {
				return init || policy != v1.RestartPolicyAlways
			}
			return policy == v1.RestartPolicyNever
		}
	}
	return false
}
