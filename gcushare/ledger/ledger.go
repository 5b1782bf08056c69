package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// Errors of Assume. Branch on them with errors.Is.
var (
	ErrNoRoom        = errors.New("no room")
	ErrUnknownDevice = errors.New("unknown device")
	ErrConflict      = errors.New("conflicts with what is known of the pod")
)

// Ledger is the one account of who holds what. All methods are safe for concurrent use.
type Ledger struct {
	names *contract.Names

	// mu guards everything below. Nothing is called while it is held that could wait.
	mu      sync.Mutex
	slots   map[string]*slot       // by node name
	where   map[types.UID]string   // node of each holder
	gone    map[types.UID]struct{} // released pods whose deletion is yet to be seen
	removed map[string]string      // version of the last deletion of a node
	units   map[int64]int          // how many nodes use a memory unit
	vec     vector                 // built nodes, for views
	dirty   map[string]struct{}    // nodes to build before the next view
	gen     uint64                 // counts changes
	view    *View                  // the view of gen viewGen, nil if none
}

// slot is a node's ledger entry. A node that holders name before its Node object is seen has the zero
// capacity of a node without GCU.
type slot struct {
	capacity *Capacity // nil while there is no Node object
	none     *Capacity // stands in for it
	holders  []*Holder // sorted by UID
	built    *Node     // nil when stale
}

// New returns an empty ledger.
func New(names *contract.Names) *Ledger {
	return &Ledger{
		names:   names,
		slots:   map[string]*slot{},
		where:   map[types.UID]string{},
		gone:    map[types.UID]struct{}{},
		removed: map[string]string{},
		units:   map[int64]int{},
		dirty:   map[string]struct{}{},
		vec:     newVector(),
	}
}

// Names returns the names the ledger reads objects by.
func (l *Ledger) Names() *contract.Names { return l.names }

// SetCapacity sets what a node offers, unless something later is known of the node. It reports whether
// anything changed.
func (l *Ledger) SetCapacity(c *Capacity) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if removed, ok := l.removed[c.Node]; ok && notAfter(c.version, removed) {
		return false
	}
	s := l.slotLocked(c.Node)
	if s.capacity != nil {
		if Newer(s.capacity.version, c.version) {
			return false
		}
		if sameCapacity(s.capacity, c) {
			s.capacity.version = c.version
			return false
		}
	}
	l.countUnitLocked(s.capacity, -1)
	s.capacity = c
	l.countUnitLocked(c, 1)
	l.touchLocked(c.Node, s)
	return true
}

// RemoveNode forgets a node's capacity. Its holders stay until their pods are gone: a Node object can
// be deleted and made anew under running pods. version is the resourceVersion of the deleted object;
// readings of the node up to it, which a slower watcher may still bring, are ignored.
func (l *Ledger) RemoveNode(node, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removed[node] = version
	s, ok := l.slots[node]
	if !ok || s.capacity == nil || Newer(s.capacity.version, version) {
		return
	}
	l.countUnitLocked(s.capacity, -1)
	s.capacity = nil
	l.touchLocked(node, s)
	l.dropIfEmptyLocked(node, s)
}

// Assume charges a pod to the cards of its record before its Binding is sent; h comes from Plan. It
// fails and changes nothing with ErrConflict when the ledger knows the pod already or saw it go,
// ErrUnknownDevice when the node has no such card, and ErrNoRoom when the cards cannot take it beside
// their holders of this moment.
func (l *Ledger) Assume(h *Holder) error {
	if h.State != InFlight {
		return fmt.Errorf("a holder that is %s cannot be assumed: %w", h.State, ErrConflict)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, gone := l.gone[h.UID]; gone {
		return fmt.Errorf("pod is gone: %w", ErrConflict)
	}
	if node, known := l.where[h.UID]; known {
		return fmt.Errorf("pod is %s on node %s: %w", l.slots[node].holder(h.UID).State, node, ErrConflict)
	}
	s, ok := l.slots[h.Node]
	if !ok || s.capacity == nil {
		return fmt.Errorf("node %s: %w", h.Node, ErrUnknownDevice)
	}
	if err := admits(l.builtLocked(h.Node, s), h); err != nil {
		return err
	}
	l.putLocked(h)
	return nil
}

// admits checks a new holder against a node as it stands.
func admits(n *Node, h *Holder) error {
	if n.Closed != placement.Open {
		return fmt.Errorf("node %s is closed: %w", n.Name, ErrNoRoom)
	}
	for _, a := range h.Containers {
		for _, rc := range a.Cards {
			if i := n.Index(rc.Minor); i < 0 || n.Cards[i].UUID != contract.NormalUUID(rc.UUID) {
				return fmt.Errorf("node %s: card %d %s: %w", n.Name, rc.Minor, rc.UUID, ErrUnknownDevice)
			}
		}
	}
	for _, c := range h.charges {
		card := &n.Cards[n.Index(c.Minor)]
		switch {
		case !card.Usable(), card.Whole, c.Whole && !card.Free(), !c.Whole && !n.Sharing:
			return fmt.Errorf("node %s: card %d takes no such holder: %w", n.Name, c.Minor, ErrNoRoom)
		case share.Add(card.UsedMiB, c.MiB) > card.TotalMiB:
			return fmt.Errorf("node %s: card %d has %d MiB free, %d asked: %w", n.Name, c.Minor, card.FreeMiB(), c.MiB, ErrNoRoom)
		}
	}
	return nil
}

// Forget undoes Assume. It is idempotent and touches nothing that was confirmed or is doubtful.
func (l *Ledger) Forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.holderLocked(uid); h != nil && h.State == InFlight {
		l.removeLocked(h)
	}
}

// Doubt marks an assumed pod whose Binding may or may not have been stored. It then holds its room
// until Observe, Settle or Release decides.
func (l *Ledger) Doubt(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h := l.holderLocked(uid); h != nil && h.State == InFlight {
		d := *h
		d.State = Doubtful
		l.putLocked(&d)
	}
}

// Settle frees a doubtful pod after the caller made sure that its Binding was not and never will be
// stored. It reports whether it freed anything.
func (l *Ledger) Settle(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.holderLocked(uid)
	if h == nil || h.State != Doubtful {
		return false
	}
	l.removeLocked(h)
	return true
}

// Rebase notes that the Binding of an assumed pod is sent again for a later version of the pod. It
// reports whether the pod is still in flight.
func (l *Ledger) Rebase(uid types.UID, version string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.holderLocked(uid)
	if h == nil || h.State != InFlight {
		return false
	}
	d := *h
	d.BindVersion = version
	l.putLocked(&d)
	return true
}

// Doubtful returns the holders whose Binding is in doubt, in no promised order.
func (l *Ledger) Doubtful() []*Holder {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*Holder
	for uid := range l.where {
		if h := l.holderLocked(uid); h.State == Doubtful {
			out = append(out, h)
		}
	}
	return out
}

// confirm puts a holder seen in the API; it wins over whatever was known. With known, it does so only
// if the pod holds something already. It returns what was held before.
func (l *Ledger) confirm(h *Holder, known bool) (old *Holder, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, gone := l.gone[h.UID]; gone {
		return nil, false
	}
	if old = l.holderLocked(h.UID); old == nil {
		if known {
			return nil, false
		}
		l.putLocked(h)
		return nil, true
	}
	h.Overdue = old.Overdue && h.State == Unrecorded
	// Two watchers of one pod may bring its events in different order.
	if Newer(old.version, h.version) || sameHolder(old, h) {
		return old, false
	}
	if old.Node != h.Node {
		l.removeLocked(old)
	}
	l.putLocked(h)
	return old, true
}

// Release frees what a pod holds, because it was deleted or has ended. It is final: no later event
// brings the pod back. It reports whether the pod held anything.
func (l *Ledger) Release(uid types.UID) bool { return l.release(uid, false) }

func (l *Ledger) release(uid types.UID, known bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.holderLocked(uid)
	if h == nil && known {
		return false
	}
	l.gone[uid] = struct{}{}
	if h == nil {
		return false
	}
	l.removeLocked(h)
	return true
}

// Gone is Release by the one caller that sees the complete, ordered stream of a pod's events: after
// it no older event of the pod can come, so nothing of it is kept.
func (l *Ledger) Gone(uid types.UID) bool {
	freed := l.Release(uid)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.gone, uid)
	return freed
}

// MarkOverdue closes the node of a pod that still has no record. It reports whether it had an effect.
func (l *Ledger) MarkOverdue(uid types.UID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.holderLocked(uid)
	if h == nil || h.State != Unrecorded || h.Overdue {
		return false
	}
	d := *h
	d.Overdue = true
	l.putLocked(&d)
	return true
}

// Holder returns what is known of a pod, nil if it holds nothing.
func (l *Ledger) Holder(uid types.UID) *Holder {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holderLocked(uid)
}

// Node returns a node as it stands, nil if the ledger does not know it.
func (l *Ledger) Node(name string) *Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.slots[name]
	if !ok {
		return nil
	}
	return l.builtLocked(name, s)
}

// offer returns the slot's capacity, that of a node without GCU when there is no Node object.
func (s *slot) offer(node string) *Capacity {
	if s.capacity != nil {
		return s.capacity
	}
	if s.none == nil {
		s.none = absent(node)
	}
	return s.none
}

func (s *slot) holder(uid types.UID) *Holder {
	if i, found := slices.BinarySearchFunc(s.holders, uid, byUID); found {
		return s.holders[i]
	}
	return nil
}

func (l *Ledger) slotLocked(node string) *slot {
	s, ok := l.slots[node]
	if !ok {
		s = &slot{}
		l.slots[node] = s
	}
	return s
}

func (l *Ledger) holderLocked(uid types.UID) *Holder {
	node, ok := l.where[uid]
	if !ok {
		return nil
	}
	return l.slots[node].holder(uid)
}

func (l *Ledger) putLocked(h *Holder) {
	s := l.slotLocked(h.Node)
	s.holders = insertHolder(s.holders, h)
	l.where[h.UID] = h.Node
	l.touchLocked(h.Node, s)
}

func (l *Ledger) removeLocked(h *Holder) {
	s := l.slots[h.Node]
	s.holders = removeHolder(s.holders, h.UID)
	delete(l.where, h.UID)
	l.touchLocked(h.Node, s)
	l.dropIfEmptyLocked(h.Node, s)
}

func (l *Ledger) touchLocked(node string, s *slot) {
	s.built = nil
	l.dirty[node] = struct{}{}
	l.gen++
	l.view = nil
}

// dropIfEmptyLocked forgets a node that has neither a Node object nor holders.
func (l *Ledger) dropIfEmptyLocked(node string, s *slot) {
	if s.capacity == nil && len(s.holders) == 0 {
		delete(l.slots, node)
		l.vec.remove(node)
		delete(l.dirty, node)
	}
}

func (l *Ledger) builtLocked(node string, s *slot) *Node {
	if s.built == nil {
		s.built = build(s.offer(node), slices.Clone(s.holders))
	}
	return s.built
}

func (l *Ledger) countUnitLocked(c *Capacity, by int) {
	if c == nil || len(c.Cards) == 0 {
		return
	}
	if l.units[c.UnitMiB] += by; l.units[c.UnitMiB] == 0 {
		delete(l.units, c.UnitMiB)
	}
}

// commonUnitLocked is the memory unit most nodes use, the smaller of two equally common ones.
func (l *Ledger) commonUnitLocked() int64 {
	best, count := int64(share.DefaultUnitMiB), 0
	for _, unit := range slices.Sorted(maps.Keys(l.units)) {
		if l.units[unit] > count {
			best, count = unit, l.units[unit]
		}
	}
	return best
}
