package gcumap

import (
	"fmt"
	"slices"
	"strings"
)

func (p *pen) card(n *Node, minor int, stem, below string) {
	i := slices.IndexFunc(n.Cards, func(c Card) bool { return c.Minor == minor })
	c := &n.Cards[i]
	r := p.row()
	r.put(faint, stem)
	label := fmt.Sprintf("card %d", c.Minor)
	r.put(plain, label)
	if room := barAt - 2 - r.cols; p.wide || room > 2 {
		model := clean(c.Model)
		if !p.wide {
			model = cut(model, room, p.gap)
		}
		r.put(faint, " "+model)
	}
	r.to(barAt)
	look := styles[c.State]
	on, off := p.bar(c.UsedMiB, c.TotalMiB, barCells)
	r.put(look, on)
	r.put(faint, off)
	figures := fmt.Sprintf("%d/%d MiB", c.UsedMiB, c.TotalMiB)
	if p.unsure {
		figures = p.atLeast + figures
	}
	r.to(figureEnd - columns(figures))
	if c.UsedMiB > c.TotalMiB {
		r.put(bad, figures)
	} else {
		r.put(plain, figures)
	}
	r.to(p.stateAt)
	state, more := p.state(c, p.width-r.cols)
	r.put(look, state)
	if p.wide {
		r.to(p.stateAt + 28)
		r.put(plain, fmt.Sprintf("free %-9s %-9s  %s  %s", plural(int(c.FreeUnits), "unit"), plural(int(c.FreeSlices), "slice"), clean(c.UUID), clean(c.PCIBusID)))
	}
	for _, text := range more {
		p.note(below+"   ", look, "", text)
	}
	p.holders(c.Holders, below)
}

var styles = map[State]style{Sick: bad, Swapped: warn, Whole: full, Shared: part, Cordoned: warn, Free: good}

// state is a card's state in at most room columns, and in more what did not fit beside it.
func (p *pen) state(c *Card, room int) (text string, more []string) {
	text = string(c.State)
	if p.unsure && c.State == Free {
		text = "free?"
	}
	detail := func(word, cause string) {
		if cause = clean(cause); cause == "" {
			return
		}
		if columns(text)+2+columns(cause) <= room {
			text += ": " + cause
			return
		}
		more = append(more, word+": "+cause)
	}
	if c.State == Sick {
		detail(string(Sick), c.Sick)
	}
	if c.Cordon != nil {
		if c.State != Cordoned && columns(text)+2+len(Cordoned) <= room {
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
