package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/topscloud/topscloud/scheduler/screen"
)

// DrawOptions of Draw.
type DrawOptions struct {
	Now time.Time
	// Wide lists every node on a line of its own and breaks no line.
	Wide bool
}

// Draw lays an explanation out as text.
func Draw(x *Explanation, o DrawOptions) *screen.Page {
	p := &screen.Page{}
	if o.Wide {
		p.Widen()
	}
	p.Line(screen.Strong, x.Summary)
	if asks := askText(x.Asks); asks != "" {
		text := "It asks for " + asks
		if x.Topology != "" {
			text += ", " + x.Topology
		}
		if x.Scheduler != "" && x.State == Waiting {
			text += "; scheduler " + x.Scheduler
		}
		p.Line(screen.Plain, text+".")
	}
	for _, c := range x.Cards {
		p.Item("- ", screen.Plain, cardText(&c))
	}
	if len(x.Findings) > 0 {
		p.Blank()
	}
	DrawFindings(p, x.Findings)
	if x.Well {
		p.Line(screen.Good, "Nothing is wrong with it.")
	}
	if len(x.Nodes) > 0 {
		p.Blank()
		p.Table([]screen.Column{{Title: "NODE", Flex: true}, {Title: "GCU", Flex: true}, {Title: "OTHERWISE", Flex: true}}, Rows(x.Nodes, o.Wide))
	}
	drawChanges(p, x)
	if x.Said != nil && x.Said.Message != "" {
		p.Blank()
		p.Line(screen.Strong, fmt.Sprintf("The scheduler's words, %s ago:", ago(o.Now, x.Said.Since)))
		p.Item("  ", screen.Plain, x.Said.Message)
	} else if x.State == Waiting && !slices.ContainsFunc(x.Findings, func(f Finding) bool {
		return f.Reason == "NotLookedAt" || f.Reason == "UnknownScheduler"
	}) {
		p.Blank()
		p.Line(screen.Warn, "No scheduler has said anything about it.")
	}
	DrawUnseen(p, x.Unseen)
	return p
}

// DrawFindings lists what is wrong and what to do about it.
func DrawFindings(p *screen.Page, findings []Finding) {
	for _, f := range findings {
		style := screen.Bad
		if slices.Contains([]string{"RoomNow", "Nominated", "NotEvaluated", "Unseen"}, f.Reason) {
			style = screen.Warn
		}
		p.Item("! ", style, f.Text)
		if f.Do != "" {
			p.Item("  > ", screen.Plain, f.Do)
		}
	}
}

func drawChanges(p *screen.Page, x *Explanation) {
	none := !slices.ContainsFunc(x.Nodes, func(n Node) bool { return n.Fits }) && len(x.Asks) > 0
	if len(x.Nodes) == 0 || !none {
		return
	}
	p.Blank()
	DrawChanges(p, x.Nodes, x.Changes)
}

// DrawChanges lists changes that would help where no node fits.
func DrawChanges(p *screen.Page, nodes []Node, changes []Change) {
	if len(changes) == 0 && slices.ContainsFunc(nodes, func(n Node) bool { return n.GCUFits }) {
		p.Line(screen.Strong, "Cards are not what is missing: see the last column.")
		return
	}
	if len(changes) == 0 {
		p.Line(screen.Strong, "No single change of memory, cards, topology, cordon or holders would help.")
		return
	}
	each := "Each of these"
	if len(changes) == 1 {
		each = "This"
	}
	p.Line(screen.Strong, each+" would help, and nothing smaller of its kind:")
	for _, c := range changes {
		p.Item("- ", screen.Good, c.Text)
	}
}

// DrawUnseen lists what could not be seen.
func DrawUnseen(p *screen.Page, unseen []string) {
	if len(unseen) == 0 {
		return
	}
	p.Blank()
	p.Line(screen.Strong, "Not seen:")
	for _, text := range unseen {
		p.Item("- ", screen.Warn, text)
	}
}

// Rows makes table rows of verdicts; nodes of the same verdict share one, unless each is wanted.
func Rows(nodes []Node, each bool) [][]screen.Cell {
	type group struct {
		names []string
		node  *Node
	}
	var groups []*group
	for i := range nodes {
		n := &nodes[i]
		at := slices.IndexFunc(groups, func(g *group) bool {
			return !each && g.node.GCU == n.GCU && slices.Equal(g.node.Others, n.Others)
		})
		if at < 0 {
			groups = append(groups, &group{node: n})
			at = len(groups) - 1
		}
		groups[at].names = append(groups[at].names, n.Name)
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return order(a.node) - order(b.node) })
	var out [][]screen.Cell
	for _, g := range groups {
		names := strings.Join(g.names, ", ")
		if len(g.names) > 3 {
			names = fmt.Sprintf("%s and %d more", strings.Join(g.names[:2], ", "), len(g.names)-2)
		}
		gcu, other := screen.Cell{Text: g.node.GCU, Style: screen.Bad}, screen.Cell{Text: strings.Join(g.node.Others, "; "), Style: screen.Bad}
		if g.node.GCUFits {
			gcu.Style = screen.Good
		}
		if other.Text == "" {
			other = screen.Cell{Text: "-", Style: screen.Faint}
		}
		out = append(out, []screen.Cell{{Text: names}, gcu, other})
	}
	return out
}

// order puts nodes with room first and those without GCU last.
func order(n *Node) int {
	switch {
	case n.Fits:
		return 0
	case n.GCU == "no GCU on the node":
		return 2
	}
	return 1
}

func askText(asks []Ask) string {
	var parts []string
	for _, a := range asks {
		text := fmt.Sprintf("%d × %s", a.Amount, a.Resource)
		if a.Cards > 1 && int64(a.Cards) != a.Amount {
			text += fmt.Sprintf(" over %d cards", a.Cards)
		}
		if len(asks) > 1 {
			text += " in " + a.Container
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func cardText(c *Card) string {
	model := c.Model
	if c.UUID != "" {
		model = strings.TrimSpace(model + " " + c.UUID)
	}
	if c.Whole {
		return fmt.Sprintf("card %d of %s, whole (%s)", c.Minor, c.Node, model)
	}
	return fmt.Sprintf("card %d of %s, %d MiB of it (%s)", c.Minor, c.Node, c.MiB, model)
}
