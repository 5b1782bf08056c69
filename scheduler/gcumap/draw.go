package gcumap

import (
	"fmt"
	"strings"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/screen"
)

// Columns of a card's line: its label, the bar, the figures (right-aligned), the state. The lines of
// its holders use the same last column.
const (
	barAt     = 25
	barCells  = 12
	figureEnd = 56
	stateAt   = 58
	// maxDepth is how deep groups are drawn; what is nested deeper is drawn flat.
	maxDepth = 4
	// maxHolders is how many holders of a card are drawn.
	maxHolders = 12
)

// DrawOptions say how to draw.
type DrawOptions struct {
	Names *contract.Names
	// Wide leaves nothing out and cuts nothing, however long lines get.
	Wide bool
	// ASCII draws without characters that a terminal of East Asian width may show twice as wide.
	ASCII bool
}

// Draw draws a map.
func Draw(m *Map, o DrawOptions) *screen.Page {
	p := &pen{glyphs: unicodeGlyphs, names: o.Names, wide: o.Wide, unsure: len(m.Incomplete) > 0, stateAt: stateAt}
	if o.ASCII {
		p.glyphs = asciiGlyphs
	}
	if o.Wide {
		p.Widen()
		p.stateAt = max(stateAt, p.longestHolder(m)+2)
	}
	for i := range m.Nodes {
		p.node(&m.Nodes[i])
		p.Blank()
	}
	p.footer(m)
	return &p.Page
}

type pen struct {
	screen.Page
	glyphs
	names   *contract.Names
	wide    bool
	unsure  bool // figures are lower bounds
	stateAt int
}

// segment is a piece of a line that is broken only between pieces.
type segment struct {
	style screen.Style
	text  string
}

// segments writes pieces with dots between them, onto more lines where they do not fit.
func (p *pen) segments(r *screen.Row, indent string, list []segment) {
	first := true
	for _, s := range list {
		s.text = screen.Cut(s.text, p.Width()-screen.Columns(indent), p.gap)
		switch {
		case first:
		case r.Columns()+3+screen.Columns(s.text) <= p.Width():
			r.Put(screen.Faint, " "+p.dot+" ")
		default:
			r = p.Row()
			r.Put(screen.Faint, indent)
		}
		r.Put(s.style, s.text)
		first = false
	}
}

func (p *pen) node(n *Node) {
	r := p.Row()
	branches := p.branches(n.Groups, nil)
	if len(n.Elsewhere) > 0 {
		branches = append(branches, branch{elsewhere: n.Elsewhere})
	}
	p.segments(r, p.down, append([]segment{{screen.Strong, n.Name}}, p.facts(n)...))
	if c := n.Closed; c != nil && (c.Reason != noGCU || len(c.Problems) > 0) {
		p.note(p.down, screen.Bad, "! ", c.Message)
		for _, problem := range c.Problems {
			text := problem.Message
			if problem.Name != "" {
				text = problem.Namespace + "/" + problem.Name + ": " + text
			}
			p.note(p.down+"  ", screen.Plain, "", text)
		}
	}
	if !n.Registered && len(n.Cards) > 0 {
		p.note(p.down, screen.Warn, "! ", "kubelet offers no GCU: the node's agent is not registered")
	}
	p.tree(n, branches, "", len(n.Cards) == 0)
	if len(n.Cards) == 0 {
		return
	}
	r = p.Row()
	r.Put(screen.Faint, p.last)
	p.segments(r, p.blank, p.totals(&n.Totals))
}

// facts are what a node's first line says behind its name.
func (p *pen) facts(n *Node) []segment {
	if n.Absent {
		return []segment{{screen.Warn, "Node object not seen"}}
	}
	var out []segment
	if !n.Ready {
		out = append(out, segment{screen.Bad, "not ready"})
	}
	if !n.Schedulable {
		out = append(out, segment{screen.Warn, "unschedulable"})
	}
	if len(n.Cards) == 0 {
		if n.Closed != nil && n.Closed.Reason == noGCU {
			return append(out, segment{screen.Warn, fmt.Sprintf("no cards: annotation %s is not there", p.names.DevicesKey)})
		}
		return append(out, segment{screen.Warn, "cards unknown"})
	}
	sharing := segment{screen.Plain, "sharing on"}
	if !n.Sharing {
		sharing = segment{screen.Warn, "sharing off"}
	}
	return append(out, segment{screen.Plain, models(n.Cards, p.times)}, segment{screen.Plain, "unit " + size(n.MemoryUnitMiB)},
		segment{screen.Plain, fmt.Sprintf("%d slices a card", n.SliceCount)}, sharing)
}

// models is "8 × S60", or "2 × S60, 2 × T20".
func models(cards []Card, times string) string {
	var order []string
	count := map[string]int{}
	for i := range cards {
		model := modelOf(&cards[i])
		if count[model]++; count[model] == 1 {
			order = append(order, model)
		}
	}
	for i, model := range order {
		order[i] = fmt.Sprintf("%d %s %s", count[model], times, model)
	}
	return strings.Join(order, ", ")
}

func modelOf(c *Card) string {
	if m := screen.Clean(c.Model); m != "" {
		return m
	}
	return "unknown model"
}

func size(mib int64) string {
	if mib%1024 == 0 {
		return fmt.Sprintf("%d GiB", mib/1024)
	}
	return fmt.Sprintf("%d MiB", mib)
}

// note writes text over as many lines as it needs.
func (p *pen) note(prefix string, s screen.Style, mark, text string) {
	room := p.Width() - screen.Columns(prefix) - screen.Columns(mark)
	for i, line := range screen.Wrap(screen.Clean(text), room) {
		r := p.Row()
		r.Put(screen.Faint, prefix)
		if i > 0 {
			mark = strings.Repeat(" ", screen.Columns(mark))
		}
		r.Put(s, mark+line)
	}
}

// totals is "8 cards: 4 free, 2 shared, 1 whole, 1 sick" and the memory.
func (p *pen) totals(t *Totals) []segment {
	words := []string{
		fmt.Sprintf("%d free", t.Free), fmt.Sprintf("%d shared", t.Shared),
		fmt.Sprintf("%d whole", t.Whole), fmt.Sprintf("%d sick", t.Sick),
	}
	if p.unsure {
		words[0] += "?"
	}
	if t.Cordoned > 0 {
		words = append(words, fmt.Sprintf("%d cordoned", t.Cordoned))
	}
	if t.Swapped > 0 {
		words = append(words, fmt.Sprintf("%d swapped", t.Swapped))
	}
	atLeast := ""
	if p.unsure {
		atLeast = p.atLeast
	}
	return []segment{
		{screen.Plain, plural(t.Cards, "card") + ": " + strings.Join(words, ", ")},
		{screen.Plain, fmt.Sprintf("%s%d/%d MiB promised", atLeast, t.PromisedMiB, t.TotalMiB)},
	}
}

func plural(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}

func (p *pen) footer(m *Map) {
	if m.Totals.Cards == 0 && len(m.Incomplete) == 0 {
		p.nothing(m)
	} else {
		list := []segment{{screen.Strong, "cluster"}, {screen.Plain, plural(m.Totals.Nodes, "node")}}
		if m.Totals.Cards == 0 {
			list = append(list, segment{screen.Warn, "cards unknown"})
		} else {
			list = append(list, p.totals(&m.Totals)...)
		}
		p.segments(p.Row(), p.blank, list)
	}
	if m.OtherNodes > 0 && m.Totals.Cards > 0 {
		p.Row().Put(screen.Faint, plural(m.OtherNodes, "node")+" without GCU not drawn")
	}
	if m.WaitingPods > 0 {
		p.Row().Put(screen.Warn, plural(m.WaitingPods, "pod")+" waiting for GCU")
	}
	if len(m.Incomplete) > 0 {
		p.note("", screen.Warn, "! ", "incomplete, figures are what at least is held: "+strings.Join(m.Incomplete, " "))
	}
}

// nothing says what to check when there are no cards.
func (p *pen) nothing(m *Map) {
	p.note("", screen.Warn, "", fmt.Sprintf("No GCU cards on %s. Check on a node that should have some:", plural(m.OtherNodes+m.Totals.Nodes, "node")))
	p.note("  ", screen.Plain, "1. ", fmt.Sprintf("label %s=true, where the node agent runs: kubectl get nodes -L %s", p.names.PresentLabel, p.names.PresentLabel))
	p.note("  ", screen.Plain, "2. ", fmt.Sprintf("annotation %s, which the node agent writes: kubectl describe node <node>", p.names.DevicesKey))
	p.note("  ", screen.Plain, "3. ", "the node agent's log: the driver loaded, the cards found")
}
