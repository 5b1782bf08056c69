package ledger

import (
	"fmt"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// Capacity is what a node offers, read from its Node object. It is immutable.
type Capacity struct {
	Node string
	// Cards carries the cards with nothing held; Tree how they are wired.
	Cards      []placement.Card
	Tree       *topology.Tree
	UnitMiB    int64
	SliceCount int64
	Sharing    bool
	// Closed is Open, NoGCU, BadDevices or CordonUnread; Problem says it in words.
	Closed      placement.Closure
	Problem     string
	Allocatable share.Totals
	MemoryMiB   int64

	version         string // resourceVersion of the Node object
	devices, cordon string // the annotations as written
}

// ReadCapacity reads a Node object. It never fails: what cannot be read closes the node and Problem
// says why. prev, which may be nil, is an earlier reading of the node: annotations that did not change
// are not parsed again. A cordon that has a time until it holds is read as holding; the agent clears
// it when due.
func ReadCapacity(names *contract.Names, node *v1.Node, prev *Capacity) *Capacity {
	c := &Capacity{
		Node:       node.Name,
		version:    node.ResourceVersion,
		devices:    node.Annotations[names.DevicesKey],
		cordon:     node.Annotations[names.CordonKey],
		UnitMiB:    share.DefaultUnitMiB,
		SliceCount: contract.DefaultSliceCount,
		Sharing:    node.Labels[names.SharingLabel] == "true",
		Closed:     placement.NoGCU,
	}
	if mib, err := strconv.ParseInt(node.Labels[names.Label(contract.LabelMemory)], 10, 64); err == nil && mib > 0 {
		c.MemoryMiB = mib
	}
	for k := range c.Allocatable {
		if name := share.Kind(k).Resource(names); name != "" {
			q := node.Status.Allocatable[v1.ResourceName(name)]
			c.Allocatable[k] = max(q.Value(), 0)
		}
	}
	if prev != nil && prev.devices == c.devices && prev.cordon == c.cordon {
		c.Cards, c.Tree, c.UnitMiB, c.SliceCount = prev.Cards, prev.Tree, prev.UnitMiB, prev.SliceCount
		c.Closed, c.Problem = prev.Closed, prev.Problem
		return c
	}
	if c.devices == "" {
		c.Tree = noCards
		return c
	}
	if err := c.readDevices(c.devices); err != nil {
		c.Tree = noCards
		c.Cards, c.Closed = nil, placement.BadDevices
		c.Problem = fmt.Sprintf("annotation %s: %v", names.DevicesKey, err)
		return c
	}
	if err := c.readCordon(c.cordon); err != nil {
		c.Closed = placement.CordonUnread
		c.Problem = fmt.Sprintf("annotation %s: %v", names.CordonKey, err)
	}
	return c
}

func (c *Capacity) readDevices(text string) error {
	d, err := contract.DecodeDevices(text)
	if err != nil {
		return err
	}
	leaves := make([]topology.Card, 0, len(d.Devices))
	c.Cards = make([]placement.Card, 0, len(d.Devices))
	for _, dev := range d.Devices {
		leaves = append(leaves, topology.Card{Minor: dev.Minor, Bridges: dev.Bridges, NUMA: dev.NUMA})
		c.Cards = append(c.Cards, placement.Card{
			Minor: dev.Minor, UUID: contract.NormalUUID(dev.UUID), Model: dev.Model, TotalMiB: dev.MemoryMiB, Sick: dev.Health != "",
		})
	}
	if c.Tree, err = topology.New(leaves); err != nil {
		return err
	}
	c.UnitMiB, c.SliceCount = d.MemoryUnitMiB, d.SliceCount
	if len(c.Cards) > 0 {
		c.Closed = placement.Open
	}
	return nil
}

func (c *Capacity) readCordon(text string) error {
	if text == "" {
		return nil
	}
	cordon, err := contract.DecodeCordon(text)
	if err != nil {
		return err
	}
	for _, cc := range cordon.Cards {
		for i := range c.Cards {
			if c.Cards[i].Minor == cc.Minor {
				c.Cards[i].Cordoned = true
			}
		}
	}
	return nil
}

// noCards is the tree of a node without cards.
var noCards, _ = topology.New(nil)

// absent is the capacity of a node whose Node object is not there.
func absent(node string) *Capacity {
	return &Capacity{Node: node, Tree: noCards, Closed: placement.NoGCU}
}
