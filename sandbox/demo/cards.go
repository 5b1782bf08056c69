package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/internal/contract"
)

// held is what a pod holds by its record.
type held struct {
	whole []int
	// shares maps a minor to the amounts of the containers on it, in the record's order.
	shares map[int][]int64
}

// recordOf reads a pod's record; a pod that asks for no card has an empty one.
func recordOf(p *corev1.Pod, names *contract.Names) (held, error) {
	h := held{shares: map[int][]int64{}}
	text, ok := p.Annotations[names.AllocationKey]
	if !ok {
		return h, nil
	}
	a, err := contract.DecodeAllocation(text)
	if err != nil {
		return h, fmt.Errorf("record: %w", err)
	}
	for _, c := range a.Containers {
		if ended(p, c.Name) {
			continue
		}
		for _, card := range c.Cards {
			if card.Whole {
				h.whole = append(h.whole, card.Minor)
			} else {
				h.shares[card.Minor] = append(h.shares[card.Minor], card.MemoryMiB)
			}
		}
	}
	slices.Sort(h.whole)
	h.whole = slices.Compact(h.whole)
	return h, nil
}

// ended reports whether a container is an init container that is over: it holds nothing any more.
func ended(p *corev1.Pod, container string) bool {
	for _, cs := range p.Status.InitContainerStatuses {
		if cs.Name == container {
			return cs.State.Terminated != nil
		}
	}
	return false
}

// minors returns the cards, sorted.
func (h held) minors() []int {
	out := append(slices.Clone(h.whole), slices.Collect(maps.Keys(h.shares))...)
	slices.Sort(out)
	return slices.Compact(out)
}

// String is the table's column: "0-7" for whole cards, "3: 8192 MiB" for shares.
func (h held) String() string {
	var parts []string
	if len(h.whole) > 0 {
		parts = append(parts, ranges(h.whole))
	}
	for _, minor := range slices.Sorted(maps.Keys(h.shares)) {
		var amounts []string
		for _, mib := range h.shares[minor] {
			amounts = append(amounts, fmt.Sprint(mib))
		}
		parts = append(parts, fmt.Sprintf("%d: %s MiB", minor, strings.Join(amounts, "+")))
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// ranges writes sorted numbers as "0-3,6".
func ranges(sorted []int) string {
	var b strings.Builder
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		if fmt.Fprint(&b, sorted[i]); j > i {
			fmt.Fprintf(&b, "-%d", sorted[j])
		}
		i = j + 1
	}
	return b.String()
}
