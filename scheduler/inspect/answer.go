package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// Node is the old answer about one node. Amounts are slices.
type Node struct {
	Name         string            `json:"name"`
	TotalGCU     int64             `json:"totalGCU"`
	UsedGCU      int64             `json:"usedGCU"`
	AvailableGCU int64             `json:"availableGCU"`
	Devices      map[string]Device `json:"devices"`
	Error        string            `json:"error"`
	Warn         string            `json:"warn"`
}

// Device is one card, keyed by its minor.
type Device struct {
	Virt         string `json:"virt"`
	TotalGCU     int64  `json:"totalGCU"`
	UsedGCU      int64  `json:"usedGCU"`
	AvailableGCU int64  `json:"availableGCU"`
	Pods         []Pod  `json:"pods"`
}

// Pod is a holder of a card. UsedGCU is rounded up to whole slices.
type Pod struct {
	Name              string   `json:"name"`
	Namespace         string   `json:"namespace"`
	UID               string   `json:"uid"`
	CreationTimestamp string   `json:"creationTimestamp"`
	UsedGCU           int64    `json:"usedGCU"`
	Phase             string   `json:"phase"`
	Containers        []string `json:"containers"`
}

// virtShared is what the old answer calls cards that are shared by memory; "DRS" would be hard
// partitions.
const virtShared = "Shared"

// lookup finds a pod in what the scheduler watches; nil when it is not there (any more).
type lookup func(namespace, name string) *v1.Pod

func describe(n *ledger.Node, pods lookup) Node {
	out := Node{Name: n.Name, Devices: map[string]Device{}}
	for i := range n.Cards {
		card := &n.Cards[i]
		slice := share.SliceMiB(card.TotalMiB, n.SliceCount)
		d := Device{Virt: virtShared, TotalGCU: n.SliceCount, AvailableGCU: share.Units(card.FreeMiB(), slice), Pods: []Pod{}}
		d.UsedGCU = d.TotalGCU - d.AvailableGCU
		for _, h := range n.Holders() {
			for _, c := range n.ChargesOf(h) {
				if c.Minor == card.Minor {
					d.Pods = append(d.Pods, holder(h, card, roundUp(c.MiB, slice), pods))
				}
			}
		}
		slices.SortFunc(d.Pods, func(a, b Pod) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
		out.Devices[strconv.Itoa(card.Minor)] = d
		out.TotalGCU += d.TotalGCU
		out.UsedGCU += d.UsedGCU
		out.AvailableGCU += d.AvailableGCU
	}
	var problems []string
	for _, p := range n.Problems {
		text := p.Text
		if p.Holder != nil {
			text = fmt.Sprintf("pod %s/%s: %s", p.Holder.Namespace, p.Holder.Name, p.Text)
		}
		problems = append(problems, text)
	}
	if n.Capacity().Problem != "" {
		problems = append(problems, n.Capacity().Problem)
	}
	if n.Closed != placement.Open {
		out.Error = strings.Join(problems, "; ")
	} else {
		out.Warn = strings.Join(problems, "; ")
	}
	return out
}

func holder(h *ledger.Holder, card *placement.Card, used int64, pods lookup) Pod {
	p := Pod{Name: h.Name, Namespace: h.Namespace, UID: string(h.UID), UsedGCU: used, Containers: []string{}}
	for _, c := range h.Containers {
		if slices.ContainsFunc(c.Cards, func(a contract.CardAllocation) bool { return a.Minor == card.Minor }) {
			p.Containers = append(p.Containers, c.Name)
		}
	}
	if pod := pods(h.Namespace, h.Name); pod != nil && pod.UID == h.UID {
		p.CreationTimestamp = pod.CreationTimestamp.UTC().Format("2006-01-02T15:04:05Z")
		p.Phase = string(pod.Status.Phase)
	}
	return p
}

func roundUp(mib, slice int64) int64 {
	if slice < 1 {
		return 0
	}
	return (mib + slice - 1) / slice
}
