package usage

import (
	"fmt"

	"github.com/topscloud/topscloud/scheduler/explain"
	"github.com/topscloud/topscloud/scheduler/screen"
)

func cards(n int) string {
	if n == 1 {
		return "1 card"
	}
	return fmt.Sprintf("%d cards", n)
}

// Draw lays a usage out as a table with a total.
func Draw(u *Usage, wide bool) *screen.Page {
	p := &screen.Page{}
	if wide {
		p.Widen()
	}
	columns := []screen.Column{{Title: "NAMESPACE", Max: 36}}
	name := func(r *Row) []screen.Cell { return []screen.Cell{{Text: r.Namespace}} }
	switch u.By {
	case Pod:
		columns = []screen.Column{{Title: "POD", Max: 31}, {Title: "NODE", Max: 16}}
		name = func(r *Row) []screen.Cell { return []screen.Cell{{Text: r.Namespace + "/" + r.Pod}, {Text: r.Node}} }
	case Node:
		columns = []screen.Column{{Title: "NODE", Max: 36}}
		name = func(r *Row) []screen.Cell { return []screen.Cell{{Text: r.Node}} }
	}
	figures := func(r *Row) []screen.Cell {
		out := []screen.Cell{{Text: fmt.Sprint(r.PromisedMiB)}, {Text: fmt.Sprintf("%.2f", r.Cards)}, {Text: fmt.Sprintf("%.1f", r.CardHours)}}
		for i := range out {
			if r.Unknown > 0 || i > 0 && r.Unsized > 0 {
				out[i].Text += "+?"
			}
		}
		if u.By != Pod {
			out = append([]screen.Cell{{Text: fmt.Sprint(r.Pods)}}, out...)
		}
		return out
	}
	if u.By != Pod {
		columns = append(columns, screen.Column{Title: "PODS", Right: true})
	}
	columns = append(columns, screen.Column{Title: "MIB", Right: true}, screen.Column{Title: "CARDS", Right: true}, screen.Column{Title: "CARD-HOURS", Right: true})
	var cells [][]screen.Cell
	for i := range u.Rows {
		cells = append(cells, append(name(&u.Rows[i]), figures(&u.Rows[i])...))
	}
	total := append(name(&Row{}), figures(&u.Total)...)
	total[0].Text = "total"
	for i := range total {
		total[i].Style = screen.Strong
	}
	p.Table(columns, append(cells, total))
	if u.OfCards > 0 {
		p.Line(screen.Faint, fmt.Sprintf("of %s with %d MiB; card-hours: of pods that live now, since bound", cards(u.OfCards), u.OfMiB))
	}
	if u.Total.Unknown > 0 {
		p.Line(screen.Warn, fmt.Sprintf("%d of the pods hold cards that are not known, since their records cannot be read: kubectl gcu map shows them.", u.Total.Unknown))
	}
	explain.DrawUnseen(p, u.Unseen)
	return p
}
