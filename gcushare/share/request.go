package share

import (
	"slices"
)

// Container is what one container asks for.
type Container struct {
	Name  string
	Phase Phase
	Kind  Kind
	// Amount is the container's limit: cards, memory units or slices, at least 1.
	Amount int64
	// Cards is the number of cards the amount is spread over: Amount for whole cards, else the pod's
	// gcu-cards (1 without it). Amount is a multiple of it.
	Cards int
}

// Request is what a pod asks for: at least one container, in start order (init containers and
// sidecars as the pod lists them, then app containers).
type Request struct {
	Containers []Container
	Policy     Policy
	Topology   Topology
	// Use and NoUse are card uuids with prefix, sorted. An empty Use allows every card.
	Use, NoUse []string
	// Totals is what the API server and kubelet count for the pod: per kind, the larger of what its
	// app containers and sidecars ask together and what any init phase asks.
	Totals Totals
}

// Allows says whether the uuid lists permit a card.
func (r *Request) Allows(uuid string) bool {
	if len(r.Use) > 0 {
		if _, ok := slices.BinarySearch(r.Use, uuid); !ok {
			return false
		}
	}
	if len(r.NoUse) > 0 {
		if _, ok := slices.BinarySearch(r.NoUse, uuid); ok {
			return false
		}
	}
	return true
}

// Fractional says whether any container asks for a part of a card.
func (r *Request) Fractional() bool {
	return slices.ContainsFunc(r.Containers, func(c Container) bool { return c.Kind.Fractional() })
}

// PerCardMiB is what the container takes of one card of cardMiB: the whole of it, or its even part in
// the node's units, each rounded down so that promises never pass the card.
func (c *Container) PerCardMiB(cardMiB, unitMiB, sliceCount int64) int64 {
	switch c.Kind {
	case Memory:
		return Mul(c.Amount/int64(c.Cards), unitMiB)
	case Slices:
		return Mul(c.Amount/int64(c.Cards), SliceMiB(cardMiB, sliceCount))
	}
	return cardMiB
}

// SliceMiB is the size of one slice of a card.
func SliceMiB(cardMiB, sliceCount int64) int64 {
	if sliceCount < 1 {
		return 0
	}
	return cardMiB / sliceCount
}

// SlicesIn is how many slices of a card of cardMiB lie in freeMiB of it. What division leaves over is never handed
// out, so there are at most sliceCount.
func SlicesIn(freeMiB, cardMiB, sliceCount int64) int64 {
	return min(Units(freeMiB, SliceMiB(cardMiB, sliceCount)), sliceCount)
}

// Units is how many whole units of unitMiB lie in freeMiB.
func Units(freeMiB, unitMiB int64) int64 {
	if unitMiB < 1 || freeMiB < 0 {
		return 0
	}
	return freeMiB / unitMiB
}

// totals sums a request the way Kubernetes does: sidecars run beside what starts after them.
func totals(containers []Container) Totals {
	var sidecars, peak, apps Totals
	for _, c := range containers {
		k := c.Kind
		switch c.Phase {
		case Init:
			peak[k] = max(peak[k], Add(sidecars[k], c.Amount))
		case Sidecar:
			sidecars[k] = Add(sidecars[k], c.Amount)
			peak[k] = max(peak[k], sidecars[k])
		default:
			apps[k] = Add(apps[k], c.Amount)
		}
	}
	for k := range peak {
		peak[k] = max(peak[k], Add(sidecars[k], apps[k]))
	}
	return peak
}

// With returns the request with other containers: what a pod would ask if it were changed.
func (r *Request) With(containers []Container) *Request {
	out := *r
	out.Containers, out.Totals = containers, totals(containers)
	return &out
}
