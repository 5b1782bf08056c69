package placement

import (
	"slices"
	"sync"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// searchBudget bounds the choices tried for one pod of several containers. The first choice is right
// nearly always; the search behind it is exact up to this many tries, which is far more than pods of
// a handful of containers can need, and keeps one odd pod from stalling the queue.
const searchBudget = 4096

// chooser places the containers of one request on one node, most demanding first, and goes back on a
// choice that leaves a later container without room.
type chooser struct {
	n      *Node
	req    *share.Request
	order  []int                    // indices into req.Containers
	picks  []topology.Set           // by container index
	left   int                      // tries left
	run    [contract.MaxCards]int64 // MiB this pod's app containers and sidecars take, by card index
	peak   [contract.MaxCards]int64 // the largest any init phase takes, by card index
	whole  [contract.MaxCards]int   // how many of this pod's running containers hold the card whole
	choice []topology.Choice
}

var choosers = sync.Pool{New: func() any { return new(chooser) }}

func newChooser(n *Node, req *share.Request) *chooser {
	c := choosers.Get().(*chooser)
	c.n, c.req, c.left = n, req, searchBudget
	cards := len(n.Cards)
	clear(c.run[:cards])
	clear(c.peak[:cards])
	clear(c.whole[:cards])
	c.order = c.order[:0]
	for i := range req.Containers {
		c.order = append(c.order, i)
	}
	c.picks = append(c.picks[:0], make([]topology.Set, len(req.Containers))...)
	c.choice = append(c.choice[:0], make([]topology.Choice, len(req.Containers))...)
	slices.SortStableFunc(c.order, func(a, b int) int { return rank(&req.Containers[a], &req.Containers[b], n) })
	return c
}

func (c *chooser) free() {
	c.n, c.req = nil, nil
	choosers.Put(c)
}

// rank orders containers for placing: those that run together before init containers (which then
// reuse their cards), whole cards before shares, larger before smaller.
func rank(a, b *share.Container, n *Node) int {
	bit := func(v bool) int {
		if v {
			return 1
		}
		return 0
	}
	if d := bit(a.Phase == share.Init) - bit(b.Phase == share.Init); d != 0 {
		return d
	}
	if d := bit(a.Kind.Fractional()) - bit(b.Kind.Fractional()); d != 0 {
		return d
	}
	if d := b.Cards - a.Cards; d != 0 && !a.Kind.Fractional() {
		return d
	}
	need := func(c *share.Container) int64 {
		if len(n.Cards) == 0 {
			return 0
		}
		return c.PerCardMiB(n.Cards[0].TotalMiB, n.UnitMiB, n.SliceCount)
	}
	switch na, nb := need(a), need(b); {
	case na > nb:
		return -1
	case na < nb:
		return 1
	}
	return b.Cards - a.Cards
}

// place puts the containers from position i of the order on, and says whether all found room.
func (c *chooser) place(i int) bool {
	if i == len(c.order) {
		return true
	}
	at := c.order[i]
	from, penalty := c.candidates(at)
	return c.try(i, from, topology.Set{}, &penalty)
}

// try takes the best choice among from that holds all of must. When the containers after it then find
// no room, it walks the other choices without meeting any twice: those without the first chosen card,
// then those with it but without the second, and so on.
func (c *chooser) try(i int, from, must topology.Set, penalty *[contract.MaxCards]int64) bool {
	if c.left == 0 {
		return false
	}
	c.left--
	at := c.order[i]
	cont := &c.req.Containers[at]
	choice, ok := c.n.Tree.Best(topology.Query{
		From: from, Must: must, Count: cont.Cards, Free: c.freeAfterOwn(), Penalty: penalty,
		Within: within(c.req.Topology), IgnoreDistance: c.req.Topology == share.AnyTopology,
	})
	if !ok {
		return false
	}
	c.picks[at], c.choice[at] = choice.Cards, choice
	undo := c.take(at, choice.Cards)
	if c.place(i + 1) {
		return true
	}
	c.giveBack(at, choice.Cards, undo)
	for minor := range choice.Cards.All() {
		if must.Has(minor) {
			continue
		}
		if c.try(i, from.Without(minor), must, penalty) {
			return true
		}
		must = must.With(minor)
	}
	return false
}

// candidates returns the cards with room for a container beside what the pod placed so far, and what
// taking each costs.
func (c *chooser) candidates(at int) (topology.Set, [contract.MaxCards]int64) {
	cont := &c.req.Containers[at]
	var from topology.Set
	var penalty [contract.MaxCards]int64
	for i := range c.n.Cards {
		card := &c.n.Cards[i]
		if !card.Usable() || card.Whole || !c.req.Allows(card.UUID) {
			continue
		}
		need := cont.PerCardMiB(card.TotalMiB, c.n.UnitMiB, c.n.SliceCount)
		if need < 1 {
			continue
		}
		beside, exclusive := c.beside(at, i)
		whole := !cont.Kind.Fractional()
		free := share.Sub(card.TotalMiB, share.Add(card.UsedMiB, beside))
		if exclusive || need > free || whole && (!card.Free() || beside > 0) {
			continue
		}
		from = from.With(card.Minor)
		penalty[card.Minor] = c.penalty(cont, i, need, free)
	}
	return from, penalty
}

// beside is what of the pod's own runs on a card at the same time as a container.
func (c *chooser) beside(at, card int) (mib int64, exclusive bool) {
	if c.req.Containers[at].Phase != share.Init {
		return c.run[card], c.whole[card] > 0
	}
	// An init container meets only the sidecars started before it.
	minor := c.n.Cards[card].Minor
	for j := range at {
		cont := &c.req.Containers[j]
		if cont.Phase == share.Sidecar && c.picks[j].Has(minor) {
			mib = share.Add(mib, cont.PerCardMiB(c.n.Cards[card].TotalMiB, c.n.UnitMiB, c.n.SliceCount))
			exclusive = exclusive || !cont.Kind.Fractional()
		}
	}
	return mib, exclusive
}

// Weights of the parts of a penalty; the lower part is a card's MiB, below 2^30.
const (
	penaltyOpen  = int64(1) << 40 // opening a wholly free card for a share
	penaltyExtra = int64(1) << 31 // MiB an init container needs beyond what its pod holds there anyway
)

func (c *chooser) penalty(cont *share.Container, i int, need, free int64) int64 {
	card := &c.n.Cards[i]
	if cont.Phase == share.Init {
		held := max(c.run[i], c.peak[i])
		extra := share.Sub(need, held)
		if extra == 0 {
			return 0
		}
		p := extra
		if held == 0 {
			p += penaltyExtra // a card the pod does not hold yet
			if card.Free() {
				p += penaltyOpen
			}
		}
		return p
	}
	if !cont.Kind.Fractional() {
		return 0
	}
	if c.req.Policy == share.Spread {
		return share.Sub(penaltyOpen, free)
	}
	p := free - need
	if card.Free() && c.run[i] == 0 {
		p += penaltyOpen
	}
	return p
}

// freeAfterOwn returns the cards that nobody holds, this pod's earlier containers included.
func (c *chooser) freeAfterOwn() topology.Set {
	var s topology.Set
	for i := range c.n.Cards {
		if card := &c.n.Cards[i]; card.Free() && card.Usable() && c.run[i] == 0 && c.peak[i] == 0 {
			s = s.With(card.Minor)
		}
	}
	return s
}

// take charges a choice and returns what giveBack needs to undo it: the former peaks.
func (c *chooser) take(at int, cards topology.Set) []int64 {
	cont := &c.req.Containers[at]
	var undo []int64
	for minor := range cards.All() {
		i := c.n.Index(minor)
		need := cont.PerCardMiB(c.n.Cards[i].TotalMiB, c.n.UnitMiB, c.n.SliceCount)
		if cont.Phase == share.Init {
			undo = append(undo, c.peak[i])
			beside, _ := c.beside(at, i)
			c.peak[i] = max(c.peak[i], share.Add(beside, need))
			continue
		}
		c.run[i] = share.Add(c.run[i], need)
		if !cont.Kind.Fractional() {
			c.whole[i]++
		}
	}
	return undo
}

func (c *chooser) giveBack(at int, cards topology.Set, undo []int64) {
	cont := &c.req.Containers[at]
	k := 0
	for minor := range cards.All() {
		i := c.n.Index(minor)
		if cont.Phase == share.Init {
			c.peak[i] = undo[k]
			k++
			continue
		}
		c.run[i] -= cont.PerCardMiB(c.n.Cards[i].TotalMiB, c.n.UnitMiB, c.n.SliceCount)
		if !cont.Kind.Fractional() {
			c.whole[i]--
		}
	}
}
