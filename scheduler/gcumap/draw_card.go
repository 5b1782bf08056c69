package gcumap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/topscloud/topscloud/scheduler/screen"
)

func (p *pen) card(n *Node, minor int, stem, below string) {
	i := slices.IndexFunc(n.Cards, func(c Card) bool { return c.Minor == minor })
	c := &n.Cards[i]
	r := p.Row()
	r.Put(screen.Faint, stem)
	label := fmt.Sprintf("card %d", c.Minor)
	r.Put(screen.Plain, label)
	if room := barAt - 2 - r.Columns(); p.wide || room > 2 {
		model := screen.Clean(c.Model)
		if !p.wide {
			model = screen.Cut(model, room, p.gap)
		}
		r.Put(screen.Faint, " "+model)
	}
	r.To(barAt)
	look := styles[c.State]
	on, off := p.bar(c.UsedMiB, c.TotalMiB, barCells)
	r.Put(look, on)
	r.Put(screen.Faint, off)
	figures := fmt.Sprintf("%d/%d MiB", c.UsedMiB, c.TotalMiB)
	if p.unsure {
		figures = p.atLeast + figures
	}
	r.To(figureEnd - screen.Columns(figures))
	if c.UsedMiB > c.TotalMiB {
		r.Put(screen.Bad, figures)
	} else {
		r.Put(screen.Plain, figures)
	}
	r.To(p.stateAt)
	state, more := p.state(c, p.Width()-r.Columns())
	r.Put(look, state)
	if p.wide {
		r.To(p.stateAt + 28)
		r.Put(screen.Plain, fmt.Sprintf("free %-9s %-9s  %s  %s", plural(int(c.FreeUnits), "unit"), plural(int(c.FreeSlices), "slice"), screen.Clean(c.UUID), screen.Clean(c.PCIBusID)))
	}
	for _, text := range more {
		p.note(below+"   ", look, "", text)
	}
	p.holders(c.Holders, below)
}

var styles = map[State]screen.Style{Sick: screen.Bad, Swapped: screen.Warn, Whole: screen.Full, Shared: screen.Part, Cordoned: screen.Warn, Free: screen.Good}

// state is a card's state in at most room columns, and in more what did not fit beside it.
func (p *pen) state(c *Card, room int) (text string, more []string) {
	text = string(c.State)
	if p.unsure && c.State == Free {
		text = "free?"
	}
	detail := func(word, cause string) {
		if cause = screen.Clean(cause); cause == "" {
			return
		}
		if screen.Columns(text)+2+screen.Columns(cause) <= room {
			text += ": " + cause
			return
		}
		more = append(more, word+": "+cause)
	}
	if c.State == Sick {
		detail(string(Sick), c.Sick)
	}
	if c.Cordon != nil {
		if c.State != Cordoned && screen.Columns(text)+2+len(Cordoned) <= room {
			text += ", " + string(Cordoned)
		}
		cause := c.Cordon.Reason
		if c.Cordon.Until != nil {
			cause = strings.TrimPrefix(cause+", until ", ", ") + c.Cordon.Until.UTC().Format("2006-01-02 15:04Z")
		}
		detail(string(Cordoned), cause)
	}
	return text, more
}
