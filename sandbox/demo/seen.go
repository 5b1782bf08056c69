package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/sandbox/simnode"
)

// seenBy reads what a pod's containers see. Whether a card is theirs alone is what they asked for; which cards,
// and how much of them, is what they were given.
func seenBy(p *corev1.Pod, names *contract.Names) (held, error) {
	h := held{shares: map[int][]int64{}}
	limits, _, err := share.Limits(names, p)
	if err != nil {
		return h, err
	}
	seen := map[string]simnode.Seen{}
	if text, ok := p.Annotations[simnode.SeesAnnotation]; ok {
		if err := json.Unmarshal([]byte(text), &seen); err != nil {
			return h, fmt.Errorf("annotation %s: %w", simnode.SeesAnnotation, err)
		}
	}
	for _, c := range limits {
		s, ok := seen[c.Name]
		if !ok || ended(p, c.Name) {
			continue
		}
		cards, sizes := strings.Split(s.Cards, ","), strings.Split(s.MemoryMiB, ",")
		if len(cards) != len(sizes) {
			return h, fmt.Errorf("container %s sees cards %q with MiB %q", c.Name, s.Cards, s.MemoryMiB)
		}
		for i := range cards {
			minor, err := strconv.Atoi(cards[i])
			if err != nil {
				return h, fmt.Errorf("container %s sees card %q", c.Name, cards[i])
			}
			mib, err := strconv.ParseInt(sizes[i], 10, 64)
			if err != nil {
				return h, fmt.Errorf("container %s sees %q MiB", c.Name, sizes[i])
			}
			if c.Kind.Fractional() {
				h.shares[minor] = append(h.shares[minor], mib)
			} else {
				h.whole = append(h.whole, minor)
			}
		}
	}
	slices.Sort(h.whole)
	return h, nil
}

// judgeSeen compares what a running pod's containers see with its record.
func judgeSeen(p *corev1.Pod, names *contract.Names) string {
	if p.Status.Phase != corev1.PodRunning {
		return ""
	}
	record, err := recordOf(p, names)
	if err != nil {
		return err.Error()
	}
	seen, err := seenBy(p, names)
	if err != nil {
		return err.Error()
	}
	if record.String() != seen.String() {
		return fmt.Sprintf("the record gives %s, its containers see %s", record, seen)
	}
	return ""
}
