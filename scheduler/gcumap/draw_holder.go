package gcumap

import (
	"fmt"
	"strings"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/scheduler/screen"
)

func (p *pen) holders(list []Holder, prefix string) {
	shown := list
	if !p.wide && len(list) > maxHolders {
		shown = list[:maxHolders]
	}
	for i := range shown {
		p.holder(&shown[i], prefix)
	}
	if rest := list[len(shown):]; len(rest) > 0 {
		var mib int64
		for i := range rest {
			mib = share.Add(mib, rest[i].MiB)
		}
		r := p.Row()
		r.Put(screen.Faint, prefix+p.blank)
		r.Put(screen.Faint, fmt.Sprintf("%s and %d more", p.gap, len(rest)))
		r.To(p.stateAt)
		r.Put(screen.Faint, fmt.Sprintf("%6d MiB", mib))
	}
}

func (p *pen) holder(h *Holder, prefix string) {
	mark, look := "   ", screen.Plain
	switch h.State {
	case ledger.Bound.String():
	case ledger.Unreadable.String():
		mark, look = " ! ", screen.Bad
	default:
		mark, look = " ? ", screen.Warn
	}
	if h.Overdue {
		mark, look = " ! ", screen.Bad
	}
	r := p.Row()
	r.Put(screen.Faint, prefix)
	r.Put(look, mark)
	pod, containers := p.holderNames(h, p.stateAt-2-r.Columns())
	r.Put(look, pod)
	if containers != "" {
		r.Put(screen.Faint, " "+p.dot+" "+containers)
	}
	r.To(p.stateAt)
	if h.MiB > 0 {
		r.Put(look, fmt.Sprintf("%6d MiB  ", h.MiB))
	}
	r.Put(look, p.amount(h))
	if p.wide && len(h.Containers) > 1 {
		p.parts(h, prefix)
	}
}

// holderNames shortens a pod's and its containers' names to fit together into room.
func (p *pen) holderNames(h *Holder, room int) (pod, containers string) {
	var names []string
	for _, c := range h.Containers {
		name := c.Name
		if c.Phase != "app" {
			name += " (" + c.Phase + ")"
		}
		names = append(names, name)
	}
	pod, containers = h.Namespace+"/"+h.Name, strings.Join(names, ", ")
	if p.wide || screen.Columns(pod)+3+screen.Columns(containers) <= room {
		return pod, containers
	}
	containers = screen.Cut(containers, max(room/3, room-3-screen.Columns(pod)), p.gap)
	return screen.Cut(pod, room-3-screen.Columns(containers), p.gap), containers
}

// amount is what a pod asked for, or what is wrong with its holding.
func (p *pen) amount(h *Holder) string {
	switch {
	case h.State == ledger.Unreadable.String():
		return "cards unknown"
	case h.Overdue:
		return "no record"
	case h.State == ledger.Doubtful.String():
		return "in doubt"
	case h.State != ledger.Bound.String():
		return h.State
	case h.Minor != nil:
		return fmt.Sprintf("card %d", *h.Minor)
	case h.Leaving:
		return "ending"
	case h.Whole:
		return "whole"
	case len(h.Containers) == 1:
		return p.asked(&h.Containers[0])
	}
	return fmt.Sprintf("%d parts", len(h.Containers))
}

// asked is a container's request of one card.
func (p *pen) asked(c *Container) string {
	each := int(c.Amount) / max(c.Cards, 1)
	switch c.Resource {
	case p.names.ResourceMemory:
		return plural(each, "unit")
	case p.names.ResourceSlice:
		return plural(each, "slice")
	}
	return "whole"
}

// parts lists what each container of a pod has of a card.
func (p *pen) parts(h *Holder, prefix string) {
	for i := range h.Containers {
		c := &h.Containers[i]
		r := p.Row()
		r.Put(screen.Faint, prefix+p.blank+p.blank+p.dot+" "+c.Name)
		r.To(p.stateAt)
		if c.MiB > 0 {
			r.Put(screen.Faint, fmt.Sprintf("%6d MiB  ", c.MiB))
		}
		r.Put(screen.Faint, p.asked(c))
	}
}

// longestHolder is where the longest holder's names end when nothing is cut.
func (p *pen) longestHolder(m *Map) int {
	longest := 0
	see := func(list []Holder) {
		for i := range list {
			h := &list[i]
			pod, containers := p.holderNames(h, 0)
			longest = max(longest, screen.Columns(pod)+3+screen.Columns(containers))
		}
	}
	for i := range m.Nodes {
		see(m.Nodes[i].Elsewhere)
		for k := range m.Nodes[i].Cards {
			see(m.Nodes[i].Cards[k].Holders)
		}
	}
	return longest + (maxDepth+2)*screen.Columns(p.down)
}
