// Package usage adds up who has how much of a cluster's cards.
//
// Promise: memory is what the scheduler's account says is held, room set aside for pods without record
// included. Cards are parts of cards summed up: half of one and half of another are 1. Card-hours are
// those parts times the hours since the pod was bound, of pods that live now; what ended before is not
// in the API any more and not counted. Usage is a versioned format: within one APIVersion fields are
// added, never changed.
package usage

import (
	"cmp"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/scheduler/survey"
)

// The version and kind of a Usage in JSON and YAML.
const (
	APIVersion = "gcu.topscloud.dev/v1"
	Kind       = "Usage"
)

// By is what is added up.
type By string

// The ways to add up.
const (
	Namespace By = "namespace"
	Pod       By = "pod"
	Node      By = "node"
)

// Usage is the answer.
type Usage struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	By         By     `json:"by"`
	// Rows are sorted by memory, the most first.
	Rows  []Row `json:"rows"`
	Total Row   `json:"total"`
	// OfCards and OfMiB are what the cluster has, held or not.
	OfCards int   `json:"ofCards"`
	OfMiB   int64 `json:"ofMiB"`
	// Unseen says what could not be seen; the figures are lower bounds then.
	Unseen []string `json:"unseen,omitempty"`
}

// Row is what one namespace, pod or node has. Which of the names are set depends on By.
type Row struct {
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Node      string `json:"node,omitempty"`
	Pods      int    `json:"pods"`
	// PromisedMiB is card memory held, Cards the parts of cards, CardHours parts times hours.
	PromisedMiB int64   `json:"promisedMiB"`
	Cards       float64 `json:"cards"`
	CardHours   float64 `json:"cardHours"`
	// Unknown counts pods whose cards are not known: their records cannot be read.
	Unknown int `json:"unknown,omitempty"`
	// Unsized counts pods with shares of cards whose size is not known, since the node cannot be seen:
	// their parts are not in Cards.
	Unsized int `json:"unsized,omitempty"`
}

func (r *Row) add(o *Row) {
	r.Pods += o.Pods
	r.PromisedMiB = share.Add(r.PromisedMiB, o.PromisedMiB)
	r.Cards += o.Cards
	r.CardHours += o.CardHours
	r.Unknown += o.Unknown
	r.Unsized += o.Unsized
}

// Add adds up what a survey saw; l is its ledger.
func Add(s *survey.Survey, l *ledger.Ledger, by By, now time.Time) *Usage {
	pods := map[types.UID]*v1.Pod{}
	for _, p := range s.Pods {
		pods[p.UID] = p
	}
	out := &Usage{APIVersion: APIVersion, Kind: Kind, By: by, Rows: []Row{}, Unseen: s.Unseen}
	rows := map[Row]*Row{}
	var keys []Row
	nodes := slices.SortedFunc(l.View().Nodes(), func(a, b *ledger.Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, n := range nodes {
		for i := range n.Cards {
			out.OfCards++
			out.OfMiB = share.Add(out.OfMiB, n.Cards[i].TotalMiB)
		}
		for _, h := range n.Holders() {
			row := rowOf(n, h, pods[h.UID], now)
			key := Row{Namespace: h.Namespace}
			switch by {
			case Pod:
				key = Row{Namespace: h.Namespace, Pod: h.Name, Node: h.Node}
			case Node:
				key = Row{Node: h.Node}
			}
			if rows[key] == nil {
				rows[key] = &Row{Namespace: key.Namespace, Pod: key.Pod, Node: key.Node}
				keys = append(keys, key)
			}
			rows[key].add(&row)
			out.Total.add(&row)
		}
	}
	for _, key := range keys {
		out.Rows = append(out.Rows, *rows[key])
	}
	slices.SortFunc(out.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.PromisedMiB, a.PromisedMiB), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Node, b.Node))
	})
	return out
}

// rowOf is what one pod has on its node.
func rowOf(n *ledger.Node, h *ledger.Holder, pod *v1.Pod, now time.Time) Row {
	row := Row{Pods: 1}
	if h.State == ledger.Unreadable {
		row.Unknown = 1
	}
	for _, c := range n.ChargesOf(h) {
		i := n.Index(c.Minor)
		mib := c.MiB
		switch {
		case i >= 0 && c.Whole:
			mib = n.Cards[i].TotalMiB
			row.Cards++
		case c.Whole:
			row.Cards++
		case i >= 0:
			row.Cards += float64(mib) / float64(n.Cards[i].TotalMiB)
		default:
			row.Unsized = 1
		}
		row.PromisedMiB = share.Add(row.PromisedMiB, mib)
	}
	if pod == nil {
		return row
	}
	if start, ok := survey.BoundAt(pod); ok {
		row.CardHours = row.Cards * max(now.Sub(start), 0).Hours()
	}
	return row
}
