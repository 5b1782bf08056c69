package placement

import (
	"fmt"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// Reason says why a request does not fit a node. Fit is 0.
type Reason uint8

// The reasons. Those above NotResolvable stay even if every holder of the node went away.
const (
	Fit             Reason = iota
	NoFreeCard             // not enough wholly free cards
	NoFreeShare            // no card (or not enough cards) with enough free memory
	NoCloseFree            // enough are free, but not on one switch or NUMA node
	NoneTogether           // each container fits alone, not all of them together
	OverAllocatable        // kubelet has too few free units
	NotResolvable
	NoDevices      // the node has no GCU
	NotRegistered  // the node's agent has not registered the resource with kubelet
	NotSharing     // the node lends no parts of cards
	DevicesUnread  // Closure BadDevices
	RecordUnread   // Closure BadRecord
	RecordMissing  // Closure MissingRecord
	RecordsTooMuch // Closure Overcommitted
	CordonBad      // Closure CordonUnread
	NoSuchUUID     // the uuid lists leave too few cards
	TooFewCards    // the node has too few cards at all
	TooLarge       // no card is that large, or too few are
	NoCloseGroup   // no switch or NUMA node of this host has that many cards
	Sick           // would fit if its unhealthy cards were healthy
	Cordoned       // would fit if its cordoned cards were open
	reasonCount
)

// Reasons is the number of reasons, for tables indexed by Reason.
const Reasons = int(reasonCount)

// Resolvable says whether the reason could go away when pods leave the node, so that preemption is
// worth a look.
func (r Reason) Resolvable() bool { return r < NotResolvable }

var closureReasons = [...]Reason{
	NoGCU: NoDevices, BadDevices: DevicesUnread, BadRecord: RecordUnread, MissingRecord: RecordMissing,
	Overcommitted: RecordsTooMuch, CordonUnread: CordonBad,
}

// Text returns the words for a reason. They depend on the request only, never on the node or the pod's
// name, so that equal reasons of many nodes add up to one line.
func (r Reason) Text(names *contract.Names, req *share.Request) string {
	switch r {
	case Fit:
		return "fits"
	case NoFreeCard:
		return fmt.Sprintf("not enough free GCU cards (%d asked)", cardsAsked(req))
	case NoFreeShare:
		if n := mostCards(req, true); n > 1 {
			return fmt.Sprintf("fewer than %d cards with enough free GCU memory", n)
		}
		return "no card with enough free GCU memory"
	case NoCloseFree:
		return "no " + groupName(req) + " free"
	case NoneTogether:
		return "the pod's containers do not fit on the free GCU cards together"
	case OverAllocatable:
		return "kubelet has too few GCU units allocatable"
	case NoDevices:
		return "no GCU on the node"
	case NotRegistered:
		return "GCU node agent not registered with kubelet"
	case NotSharing:
		return fmt.Sprintf("node does not share its GCU cards (label %s=true)", names.SharingLabel)
	case DevicesUnread:
		return fmt.Sprintf("node closed: annotation %s cannot be read", names.DevicesKey)
	case RecordUnread:
		return "node closed: a pod's GCU record cannot be read"
	case RecordMissing:
		return "node closed: a running pod has no GCU record"
	case RecordsTooMuch:
		return "node closed: GCU records pass the card's memory"
	case CordonBad:
		return fmt.Sprintf("node closed: annotation %s cannot be read", names.CordonKey)
	case NoSuchUUID:
		return fmt.Sprintf("too few GCU cards allowed by %s and %s", names.UseUUIDKey, names.NoUseUUIDKey)
	case TooFewCards:
		return fmt.Sprintf("fewer than %d GCU cards on the node", cardsAsked(req))
	case TooLarge:
		return "share larger than the node's GCU cards"
	case NoCloseGroup:
		return "no " + groupName(req) + " on the node"
	case Sick:
		return "GCU cards unhealthy"
	case Cordoned:
		return "GCU cards cordoned"
	}
	return fmt.Sprintf("GCU reason %d", uint8(r))
}

// groupName is "same-switch pair" or "same-numa group of 4".
func groupName(req *share.Request) string {
	n := max(mostCards(req, false), mostCards(req, true))
	wish := contract.TopologySameSwitch
	if req.Topology == share.SameNUMA {
		wish = contract.TopologySameNUMA
	}
	if n == 2 {
		return wish + " pair"
	}
	return fmt.Sprintf("%s group of %d", wish, n)
}

// cardsAsked is the number of whole cards the pod holds at once.
func cardsAsked(req *share.Request) int64 {
	return max(share.Add(req.Totals[share.Whole], req.Totals[share.Alias]), 1)
}

func mostCards(req *share.Request, fractional bool) int {
	n := 0
	for _, c := range req.Containers {
		if c.Kind.Fractional() == fractional {
			n = max(n, c.Cards)
		}
	}
	return n
}
