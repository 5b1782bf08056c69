package cordon

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/screen"
	"github.com/topscloud/topscloud/scheduler/survey"
)

// addHolders writes down who holds the cards of a node, if the caller may see that.
func addHolders(ctx context.Context, client kubernetes.Interface, names *contract.Names, name string, results []Result) {
	unseen := func(err error) {
		for i := range results {
			results[i].HoldersUnseen = err.Error()
		}
	}
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		unseen(err)
		return
	}
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", name).String(),
	})
	if err != nil {
		unseen(err)
		return
	}
	var pods []*v1.Pod
	for i := range list.Items {
		if p := &list.Items[i]; p.Spec.NodeName == name {
			pods = append(pods, p)
		}
	}
	n := survey.Of(names, []*v1.Node{node}, pods).Ledger(time.Time{}, time.Hour).Node(name)
	for i := range results {
		for _, h := range n.Holders() {
			for _, c := range n.ChargesOf(h) {
				if c.Minor == results[i].Minor {
					results[i].Holders = append(results[i].Holders, Holder{h.Namespace, h.Name, c.MiB, c.Whole, h.State != ledger.Bound})
				}
			}
		}
	}
}

// Draw lays out what was done.
func Draw(results []Result) *screen.Page {
	p := &screen.Page{}
	for i := range results {
		r := &results[i]
		card := fmt.Sprintf("card %d of %s", r.Minor, r.Node)
		switch {
		case r.Cordoned && r.Changed:
			p.Line(screen.Strong, card+" cordoned: no new pod gets any of it.")
		case r.Cordoned:
			p.Line(screen.Strong, card+" was cordoned already.")
		case r.Changed:
			p.Line(screen.Strong, card+" uncordoned.")
		default:
			p.Line(screen.Strong, card+" was not cordoned.")
		}
		if r.Cordoned && r.Reason != "" {
			p.Item("  ", screen.Plain, "Reason: "+r.Reason)
		}
		if r.Cordoned && r.Until != nil {
			p.Item("  ", screen.Plain, "Until "+r.Until.Format(time.RFC3339)+"; the node's agent opens it then. Where none runs, uncordon it by hand.")
		}
		if r.Cordoned {
			r.drawHolders(p)
		}
	}
	return p
}

func (r *Result) drawHolders(p *screen.Page) {
	switch {
	case r.HoldersUnseen != "":
		p.Item("  ", screen.Warn, "Who holds it cannot be seen: "+r.HoldersUnseen)
	case len(r.Holders) == 0:
		p.Item("  ", screen.Good, "Nobody holds it.")
	default:
		p.Item("  ", screen.Plain, "Still on it, and staying:")
	}
	for _, h := range r.Holders {
		text := fmt.Sprintf("%s/%s, %d MiB", h.Namespace, h.Name, h.MiB)
		if h.Whole {
			text = fmt.Sprintf("%s/%s, whole", h.Namespace, h.Name)
		}
		if h.Unsure {
			text += " (by guess: it has no record)"
		}
		p.Item("  - ", screen.Plain, text)
	}
}
