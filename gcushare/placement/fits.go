package placement

import (
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// Fits says whether the request fits the node now, and if not, why. It allocates nothing for requests
// of one container, which are nearly all.
func Fits(n *Node, req *share.Request) Reason {
	if n.Closed != Open {
		return closureReasons[n.Closed]
	}
	if !n.Sharing && req.Fractional() {
		return NotSharing
	}
	for i := range req.Containers {
		if r := alone(n, req, &req.Containers[i]); r != Fit {
			return r
		}
	}
	if len(req.Containers) > 1 && !plainlyTogether(n, req) {
		c := newChooser(n, req)
		ok := c.place(0)
		c.free()
		if !ok {
			return NoneTogether
		}
	}
	return admitted(n, req)
}

// plainlyTogether spares the search for the usual pod of several containers: each in turn, the largest
// first, gets the tightest card that still has room, or as many cards are free as the pod ever holds
// whole. False means only that the search has to tell.
func plainlyTogether(n *Node, req *share.Request) bool {
	fractional := req.Containers[0].Kind.Fractional()
	for i := range req.Containers {
		c := &req.Containers[i]
		if c.Kind.Fractional() != fractional || c.Cards > 1 {
			return false
		}
	}
	if !fractional {
		return int64(freeFor(n, req)) >= atOnce(req, func(*share.Container) int64 { return 1 })
	}
	for i := range n.Cards {
		card := &n.Cards[i]
		need := func(c *share.Container) int64 { return c.PerCardMiB(card.TotalMiB, n.UnitMiB, n.SliceCount) }
		if card.Usable() && req.Allows(card.UUID) && atOnce(req, need) <= card.FreeMiB() {
			return true
		}
	}
	return tightestFirst(n, req)
}

// freeFor counts the free cards that the request may use.
func freeFor(n *Node, req *share.Request) int {
	count := 0
	for i := range n.Cards {
		if card := &n.Cards[i]; card.Free() && card.Usable() && req.Allows(card.UUID) {
			count++
		}
	}
	return count
}

// atOnce is the most that the pod's containers hold at any time, each holding what need says.
func atOnce(req *share.Request, need func(*share.Container) int64) int64 {
	var side, apps, peak int64
	for i := range req.Containers {
		c := &req.Containers[i]
		switch c.Phase {
		case share.Init:
			peak = max(peak, share.Add(side, need(c)))
		case share.Sidecar:
			side = share.Add(side, need(c))
		default:
			apps = share.Add(apps, need(c))
		}
	}
	return max(peak, share.Add(side, apps))
}

// plainContainers is the most containers tightestFirst looks at.
const plainContainers = 8

// tightestFirst places containers that each want a share of one card and all run at the same time.
func tightestFirst(n *Node, req *share.Request) bool {
	if len(req.Containers) > plainContainers {
		return false
	}
	var order [plainContainers]*share.Container
	for i := range req.Containers {
		c := &req.Containers[i]
		if c.Phase == share.Init || c.Kind != req.Containers[0].Kind {
			return false // only containers of one kind compare by their amounts
		}
		at := i
		for ; at > 0 && order[at-1].Amount < c.Amount; at-- {
			order[at] = order[at-1]
		}
		order[at] = c
	}
	var free [contract.MaxCards]int64
	for i := range n.Cards {
		if card := &n.Cards[i]; req.Allows(card.UUID) {
			free[i] = card.FreeMiB()
		}
	}
	for _, c := range order[:len(req.Containers)] {
		best := -1
		var bestNeed int64
		for i := range n.Cards {
			need := c.PerCardMiB(n.Cards[i].TotalMiB, n.UnitMiB, n.SliceCount)
			if need <= free[i] && need > 0 && (best < 0 || free[i]-need < free[best]-bestNeed) {
				best, bestNeed = i, need
			}
		}
		if best < 0 {
			return false
		}
		free[best] -= bestNeed
	}
	return true
}

// admitted says whether kubelet would take a pod that the cards have room for. A kind that nothing is
// allocatable of and nobody holds, although cards are free for it, was never registered.
func admitted(n *Node, req *share.Request) Reason {
	if n.Trial {
		return Fit
	}
	for k := range req.Totals {
		switch {
		case req.Totals[k] == 0 || share.Add(n.Requested[k], req.Totals[k]) <= n.Allocatable[k]:
		case n.Allocatable[k] == 0 && n.Requested[k] == 0:
			return NotRegistered
		default:
			return OverAllocatable
		}
	}
	return Fit
}

// alone judges one container as if it were the only one of its pod.
func alone(n *Node, req *share.Request, c *share.Container) Reason {
	if len(n.Cards) < c.Cards {
		return TooFewCards
	}
	var allowed, large, usable, open topology.Set
	var allowedN, largeN, usableN, openN int
	cordoned, sick := false, false
	for i := range n.Cards {
		card := &n.Cards[i]
		if (len(req.Use) > 0 || len(req.NoUse) > 0) && !req.Allows(card.UUID) {
			continue
		}
		allowed, allowedN = allowed.With(card.Minor), allowedN+1
		need := c.PerCardMiB(card.TotalMiB, n.UnitMiB, n.SliceCount)
		if need > card.TotalMiB || need < 1 {
			continue
		}
		large, largeN = large.With(card.Minor), largeN+1
		if !card.Usable() {
			cordoned = cordoned || card.Cordoned
			sick = sick || card.Sick || card.Swapped
			continue
		}
		usable, usableN = usable.With(card.Minor), usableN+1
		if c.Kind.Fractional() {
			if card.FreeMiB() < need {
				continue
			}
		} else if !card.Free() {
			continue
		}
		open, openN = open.With(card.Minor), openN+1
	}
	level := within(req.Topology)
	if openN >= c.Cards && (level == topology.Across || c.Cards < 2 || n.Tree.Fits(open, c.Cards, level)) {
		return Fit
	}
	switch close := level != topology.Across && c.Cards > 1; {
	case allowedN < c.Cards:
		return NoSuchUUID
	case largeN < c.Cards:
		return TooLarge
	case close && !n.Tree.Fits(large, c.Cards, level):
		return NoCloseGroup
	case usableN < c.Cards || close && !n.Tree.Fits(usable, c.Cards, level):
		if cordoned && !sick {
			return Cordoned
		}
		return Sick
	case openN >= c.Cards:
		return NoCloseFree
	case c.Kind.Fractional():
		return NoFreeShare
	}
	return NoFreeCard
}
