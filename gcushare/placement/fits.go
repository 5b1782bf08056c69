package placement

import (
	"github.com/topscloud/topscloud/gcushare/share"
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
	if len(req.Containers) > 1 {
		c := newChooser(n, req)
		ok := c.place(0)
		c.free()
		if !ok {
			return NoneTogether
		}
	}
	return admitted(n, req)
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
