package ledger

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// Problem names a pod whose record keeps a node closed.
type Problem struct {
	Holder *Holder
	Text   string
}

// Node is a node with its holders. It is immutable; With and Without return changed copies, which is
// how a scheduling cycle tries a node without some pods.
type Node struct {
	placement.Node
	Problems []Problem

	capacity *Capacity
	holders  []*Holder // sorted by UID
	aside    []aside
}

// aside is the room set aside on a card for an unrecorded pod.
type aside struct {
	uid    types.UID
	charge share.Charge
}

// Holders returns the node's holders, sorted by UID. The slice must not be changed.
func (n *Node) Holders() []*Holder { return n.holders }

// Capacity returns what the node offers.
func (n *Node) Capacity() *Capacity { return n.capacity }

// Holder returns a holder by its pod's UID, or nil.
func (n *Node) Holder(uid types.UID) *Holder {
	if i, found := slices.BinarySearchFunc(n.holders, uid, byUID); found {
		return n.holders[i]
	}
	return nil
}

// ChargesOf returns what a holder holds on the node, the room set aside for an unrecorded one included.
func (n *Node) ChargesOf(h *Holder) []share.Charge {
	if h.recorded() {
		return h.charges
	}
	var out []share.Charge
	for _, a := range n.aside {
		if a.uid == h.UID {
			out = append(out, a.charge)
		}
	}
	return out
}

// With returns the node with a holder added or replaced.
func (n *Node) With(h *Holder) *Node {
	out := build(n.capacity, insertHolder(slices.Clone(n.holders), h))
	out.Trial = n.Trial
	return out
}

// Without returns the node without a pod, for trial; the node itself when the pod holds nothing.
func (n *Node) Without(uid types.UID) *Node {
	if n.Holder(uid) == nil {
		return n
	}
	out := build(n.capacity, removeHolder(slices.Clone(n.holders), uid))
	out.Trial = true
	return out
}

// Above returns the node without the holders below a priority, for trial.
func (n *Node) Above(priority int32) *Node {
	out := build(n.capacity, slices.DeleteFunc(slices.Clone(n.holders), func(h *Holder) bool { return h.Priority < priority }))
	out.Trial = true
	return out
}

// SameHolders says whether two states of a node have the same holders.
func (n *Node) SameHolders(o *Node) bool { return slices.Equal(n.holders, o.holders) }

// build derives a node's state from its capacity and its holders, sorted by UID. It takes holders.
func build(c *Capacity, holders []*Holder) *Node {
	n := &Node{
		Node: placement.Node{
			Name: c.Node, Tree: c.Tree, Cards: slices.Clone(c.Cards),
			UnitMiB: c.UnitMiB, SliceCount: c.SliceCount, Sharing: c.Sharing, Closed: c.Closed,
			Allocatable: c.Allocatable, MemoryMiB: c.MemoryMiB,
		},
		capacity: c, holders: holders,
	}
	for _, h := range holders {
		if h.recorded() {
			n.charge(h)
		}
	}
	// Room is set aside only once every record is charged, or it would depend on the order of UIDs.
	for _, h := range holders {
		if h.State == Unrecorded {
			n.setAside(h)
		}
	}
	for _, h := range holders {
		n.close(h)
		if !n.onSickCard(h) {
			for k := range h.Totals {
				n.Requested[k] = share.Add(n.Requested[k], h.Totals[k])
			}
		}
	}
	for i := range n.Cards {
		if card := &n.Cards[i]; card.UsedMiB > card.TotalMiB || card.Whole && card.Holders > 1 {
			n.raise(placement.Overcommitted)
			n.Problems = append(n.Problems, Problem{Text: fmt.Sprintf("card %d: records hold %d of %d MiB", card.Minor, card.UsedMiB, card.TotalMiB)})
		}
	}
	return n
}

// raise closes the node unless it is closed already.
func (n *Node) raise(c placement.Closure) {
	if n.Closed == placement.Open {
		n.Closed = c
	}
}

// charge puts a recorded holder onto its cards. A card that was exchanged under it (same minor, other
// uuid) takes no new holder until it is gone; a card that is not there at all closes the node, since
// nobody can tell what the holder really uses.
func (n *Node) charge(h *Holder) {
	for _, a := range h.Containers {
		for _, rc := range a.Cards {
			i := n.Index(rc.Minor)
			switch {
			case i < 0:
				n.contradict(h, fmt.Sprintf("container %s: the node has no card with minor %d", a.Name, rc.Minor))
			case contract.NormalUUID(rc.UUID) == n.Cards[i].UUID:
			case n.hasUUID(rc.UUID):
				n.contradict(h, fmt.Sprintf("container %s: minor %d is no longer card %s", a.Name, rc.Minor, rc.UUID))
			default:
				n.Cards[i].Swapped = true
			}
		}
	}
	if text := n.shortfall(h); text != "" {
		n.contradict(h, text)
	}
	for _, c := range h.charges {
		n.add(c)
	}
}

// shortfall says which container's record has less than its limit. Kubelet gives the container what its
// limit says, so the rest would be sold a second time. While a node's unit or slice count is being changed
// under running shares, that is no forgery but has the same cure: nothing new until they have left.
func (n *Node) shortfall(h *Holder) string {
	for i := range h.limits {
		c := &h.limits[i]
		if !c.Kind.Fractional() {
			continue
		}
		for _, a := range h.Containers {
			if a.Name != c.Name {
				continue
			}
			var has, asks int64
			for _, card := range a.Cards {
				has = share.Add(has, card.MemoryMiB)
				each := *c
				each.Cards = len(a.Cards)
				if i := n.Index(card.Minor); i >= 0 {
					asks = share.Add(asks, each.PerCardMiB(n.Cards[i].TotalMiB, n.UnitMiB, n.SliceCount))
				}
			}
			if has < asks {
				return fmt.Sprintf("container %s: the record has %d MiB, its limit is %d MiB", c.Name, has, asks)
			}
		}
	}
	return ""
}

func (n *Node) add(c share.Charge) {
	i := n.Index(c.Minor)
	if i < 0 {
		return
	}
	card := &n.Cards[i]
	mib := c.MiB
	if c.Whole {
		mib = card.TotalMiB // a record tells the memory of its day, and ECC may have changed it since
		card.Whole = true
	}
	card.UsedMiB = share.Add(card.UsedMiB, mib)
	card.Holders++
}

func (n *Node) hasUUID(uuid string) bool {
	uuid = contract.NormalUUID(uuid)
	return slices.ContainsFunc(n.Cards, func(c placement.Card) bool { return c.UUID == uuid })
}

func (n *Node) contradict(h *Holder, text string) {
	// Without a device list nothing can be compared, and the node is closed for that already.
	if n.capacity.Closed == placement.NoGCU || n.capacity.Closed == placement.BadDevices {
		return
	}
	n.raise(placement.BadRecord)
	n.Problems = append(n.Problems, Problem{Holder: h, Text: text})
}

func (n *Node) close(h *Holder) {
	switch {
	case h.State == Unreadable:
		n.raise(placement.BadRecord)
		n.Problems = append(n.Problems, Problem{Holder: h, Text: h.Problem})
	case h.State == Unrecorded && h.Overdue:
		n.raise(placement.MissingRecord)
		n.Problems = append(n.Problems, Problem{Holder: h, Text: "the pod runs without a GCU record"})
	}
}

// onSickCard says whether kubelet has taken the units of a holder out of the node's allocatable.
func (n *Node) onSickCard(h *Holder) bool {
	for _, c := range h.charges {
		if i := n.Index(c.Minor); i >= 0 && n.Cards[i].Sick {
			return true
		}
	}
	return false
}

// setAside charges an unrecorded pod to the emptiest cards, as much of it as there is room for. It
// was admitted by kubelet, so it will hold what its limits say; on which cards the node's agent will
// tell. Until then the room must not be sold.
func (n *Node) setAside(h *Holder) {
	if h.request == nil {
		return
	}
	holds := h.want
	if holds == nil {
		holds = n.guess(h.request)
	}
	for _, c := range share.Charges(holds, h.Initialized) {
		i := n.Index(c.Minor)
		if i < 0 {
			continue
		}
		card := &n.Cards[i]
		if c.MiB = min(c.MiB, share.Sub(card.TotalMiB, card.UsedMiB)); c.MiB == 0 {
			continue
		}
		// A card that others still hold of cannot be whole; all that is free of it is set aside.
		c.Whole = c.Whole && card.Free()
		n.add(c)
		n.aside = append(n.aside, aside{h.UID, c})
	}
}

// guess spreads a request over the emptiest cards.
func (n *Node) guess(req *share.Request) []share.Hold {
	var holds []share.Hold
	for i := range req.Containers {
		cont := &req.Containers[i]
		var own topology.Set
		for range cont.Cards {
			hold, ok := n.emptiestWhole(cont, holds)
			if cont.Kind.Fractional() {
				hold, ok = n.emptiest(cont, holds, own)
			}
			if !ok {
				break
			}
			holds, own = append(holds, hold), own.With(hold.Minor)
		}
	}
	return holds
}

// emptiest finds the card with most room beside what the pod's other containers were given, that the
// container is not on already.
func (n *Node) emptiest(cont *share.Container, taken []share.Hold, own topology.Set) (share.Hold, bool) {
	best, bestFree := -1, int64(0)
	for i := range n.Cards {
		card := &n.Cards[i]
		free := share.Sub(card.TotalMiB, card.UsedMiB)
		whole := card.Whole || own.Has(card.Minor)
		for _, h := range taken {
			if h.Minor == card.Minor {
				free, whole = share.Sub(free, h.MiB), whole || h.Whole
			}
		}
		if !whole && free > bestFree {
			best, bestFree = i, free
		}
	}
	if best < 0 {
		return share.Hold{}, false
	}
	card := &n.Cards[best]
	need := cont.PerCardMiB(card.TotalMiB, n.UnitMiB, n.SliceCount)
	return share.Hold{Phase: cont.Phase, Minor: card.Minor, MiB: min(need, bestFree)}, true
}

func (n *Node) emptiestWhole(cont *share.Container, taken []share.Hold) (share.Hold, bool) {
	for i := range n.Cards {
		card := &n.Cards[i]
		if !card.Free() || slices.ContainsFunc(taken, func(h share.Hold) bool { return h.Minor == card.Minor }) {
			continue
		}
		return share.Hold{Phase: cont.Phase, Minor: card.Minor, MiB: card.TotalMiB, Whole: true}, true
	}
	return share.Hold{}, false
}
