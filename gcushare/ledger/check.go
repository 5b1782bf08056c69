package ledger

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
)

// Check walks every invariant and returns what is broken, nil if nothing is. It holds the ledger's
// lock all the while and is meant for tests and for an administrator's doubt.
//
//   - on each card, the sum of the holders' MiB is at most the card's memory, and a whole-card holder is
//     alone, unless the node is closed for just that (records from outside may say anything)
//   - each pod holds on one node only, and the index by pod agrees with the nodes
//   - no released pod holds anything
//   - each built node, and each node of the current view, equals one built from scratch
func (l *Ledger) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	held := 0
	for name, s := range l.slots {
		held += len(s.holders)
		if !slices.IsSortedFunc(s.holders, func(a, b *Holder) int { return strings.Compare(string(a.UID), string(b.UID)) }) {
			bad("node %s: holders are not sorted", name)
		}
		for _, h := range s.holders {
			if h.Node != name || l.where[h.UID] != name {
				bad("node %s: holder %s is indexed under %q", name, h.UID, l.where[h.UID])
			}
			if _, gone := l.gone[h.UID]; gone {
				bad("node %s: holder %s was released", name, h.UID)
			}
		}
		fresh := build(s.offer(name), slices.Clone(s.holders))
		if s.built != nil && !sameNode(s.built, fresh) {
			bad("node %s: the built state is stale", name)
		}
		if _, stale := l.dirty[name]; !stale {
			i, ok := l.vec.index[name]
			if !ok || !sameNode(l.vec.chunks[i/chunkSize][i%chunkSize], fresh) {
				bad("node %s: the view's state is stale", name)
			}
		}
		errs = append(errs, checkCards(fresh)...)
	}
	if held != len(l.where) {
		bad("%d holders on nodes, %d in the index", held, len(l.where))
	}
	return errors.Join(errs...)
}

// checkCards sums the charges anew, apart from the code that builds nodes.
func checkCards(n *Node) []error {
	var errs []error
	for i := range n.Cards {
		card := &n.Cards[i]
		var sum int64
		holders, whole := 0, 0
		for _, h := range n.holders {
			for _, c := range n.ChargesOf(h) {
				if c.Minor != card.Minor {
					continue
				}
				holders++
				if c.Whole {
					whole++
					sum = share.Add(sum, card.TotalMiB)
				} else {
					sum = share.Add(sum, c.MiB)
				}
			}
		}
		if sum != card.UsedMiB || holders != card.Holders || (whole > 0) != card.Whole {
			errs = append(errs, fmt.Errorf("node %s: card %d: %d MiB by %d holders, booked are %d by %d", n.Name, card.Minor, sum, holders, card.UsedMiB, card.Holders))
		}
		if (sum > card.TotalMiB || whole > 0 && holders > 1) && n.Closed == placement.Open {
			errs = append(errs, fmt.Errorf("node %s: card %d: oversold, %d of %d MiB by %d holders", n.Name, card.Minor, sum, card.TotalMiB, holders))
		}
	}
	return errs
}

func sameNode(a, b *Node) bool {
	return a != nil && a.capacity == b.capacity && slices.Equal(a.holders, b.holders) &&
		slices.Equal(a.Cards, b.Cards) && a.Closed == b.Closed && a.Requested == b.Requested &&
		a.Allocatable == b.Allocatable && slices.Equal(a.aside, b.aside) && reflect.DeepEqual(a.Problems, b.Problems)
}
