package fit

import (
	"fmt"

	"github.com/topscloud/topscloud/scheduler/explain"
	"github.com/topscloud/topscloud/scheduler/screen"
)

// Draw lays a trial out as text.
func Draw(t *Trial, wide bool) *screen.Page {
	p := &screen.Page{}
	if wide {
		p.Widen()
	}
	style := screen.Good
	if len(t.Placements) < t.Replicas {
		style = screen.Bad
	}
	switch {
	case t.Replicas == 1 && len(t.Placements) == 1:
		p.Line(style, fmt.Sprintf("It fits now: %s.", t.Asks))
	case t.Replicas == 1:
		p.Line(style, fmt.Sprintf("It does not fit now: %s.", t.Asks))
	case len(t.Placements) == t.Replicas:
		p.Line(style, fmt.Sprintf("All %d replicas fit now, each with %s.", t.Replicas, t.Asks))
	default:
		p.Line(style, fmt.Sprintf("%d of %d replicas fit now, each with %s.", len(t.Placements), t.Replicas, t.Asks))
	}
	explain.DrawFindings(p, t.Findings)
	if groups := t.Groups(); len(groups) > 0 {
		var cells [][]screen.Cell
		for _, g := range groups {
			replica := fmt.Sprint(g.First)
			if g.Last > g.First {
				replica = fmt.Sprintf("%d-%d", g.First, g.Last)
			}
			closeness := "-"
			if len(g.Minors) > 1 {
				closeness = fmt.Sprintf("%d/100", g.Closeness)
			}
			cells = append(cells, []screen.Cell{{Text: replica}, {Text: g.Node}, {Text: g.Cards()}, {Text: fmt.Sprint(g.MiB)}, {Text: closeness}})
		}
		p.Blank()
		p.Table([]screen.Column{{Title: "REPLICA"}, {Title: "NODE", Max: 30}, {Title: "CARDS", Flex: true}, {Title: "MIB A CARD", Right: true}, {Title: "CLOSENESS", Right: true}}, cells)
	}
	if len(t.Placements) == t.Replicas {
		return p
	}
	p.Blank()
	if t.Replicas > 1 {
		p.Line(screen.Strong, fmt.Sprintf("Replica %d:", len(t.Placements)+1))
	}
	p.Table([]screen.Column{{Title: "NODE", Flex: true}, {Title: "GCU", Flex: true}, {Title: "OTHERWISE", Flex: true}}, explain.Rows(t.Nodes, wide))
	p.Blank()
	explain.DrawChanges(p, t.Nodes, t.Changes)
	return p
}
