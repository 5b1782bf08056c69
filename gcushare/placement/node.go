package placement

import (
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/topology"
)

// Closure says why a node takes no new holder at all.
type Closure uint8

// The closures, most basic first.
const (
	Open          Closure = iota
	NoGCU                 // no device annotation: no GCU here, or no agent yet
	BadDevices            // the device annotation cannot be read
	BadRecord             // a pod's record cannot be read or contradicts the node
	MissingRecord         // a bound pod is without record for too long
	Overcommitted         // the records on some card pass what it has
	CordonUnread          // the cordon annotation cannot be read
)

// Card is one card of a node and what of it is held.
type Card struct {
	Minor    int
	UUID     string
	Model    string
	TotalMiB int64
	UsedMiB  int64
	// Whole says that a whole-card holder has it; Holders counts all pods that hold any of it.
	Whole   bool
	Holders int
	// Sick is a card that is unhealthy or gone, Cordoned one that an administrator closed, Swapped one
	// that was exchanged under holders of the former card. None of them takes new holders.
	Sick, Cordoned, Swapped bool
}

// Usable says whether the card takes new holders at all.
func (c *Card) Usable() bool { return !c.Sick && !c.Cordoned && !c.Swapped }

// Free says whether nobody holds any of the card.
func (c *Card) Free() bool { return c.Holders == 0 }

// FreeMiB is what a new fractional holder could take, 0 on a card that takes none.
func (c *Card) FreeMiB() int64 {
	if c.Whole || !c.Usable() {
		return 0
	}
	return share.Sub(c.TotalMiB, c.UsedMiB)
}

// Node is one node as a chooser sees it. It is immutable once handed out.
type Node struct {
	Name string
	Tree *topology.Tree
	// Cards are sorted by minor.
	Cards      []Card
	UnitMiB    int64
	SliceCount int64
	// Sharing says that the node lends parts of its cards.
	Sharing bool
	Closed  Closure
	// Allocatable is what kubelet would admit, Requested what the pods on the node already ask of it
	// (pods on sick cards left out, as kubelet has taken their units away).
	Allocatable, Requested share.Totals
	// Trial says that pods were taken away to see what would fit then. What kubelet would have allocatable
	// then is not known (the agent offers a card that was held whole as shares again), so it is not compared.
	Trial bool
	// MemoryMiB is the card memory the node is labelled with; 0 when it has no such label.
	MemoryMiB int64
}

// FreeSet returns the wholly free usable cards.
func (n *Node) FreeSet() topology.Set {
	var s topology.Set
	for i := range n.Cards {
		if c := &n.Cards[i]; c.Free() && c.Usable() {
			s = s.With(c.Minor)
		}
	}
	return s
}

// Index returns the position of a minor in Cards, -1 when the node has no such card.
func (n *Node) Index(minor int) int {
	// Minors are dense on almost every host, so the first guess is right.
	if minor >= 0 && minor < len(n.Cards) && n.Cards[minor].Minor == minor {
		return minor
	}
	for i := range n.Cards {
		if n.Cards[i].Minor == minor {
			return i
		}
	}
	return -1
}

func within(t share.Topology) topology.Level {
	switch t {
	case share.SameSwitch:
		return topology.SameSwitch
	case share.SameNUMA:
		return topology.SameNUMA
	}
	return topology.Across
}
