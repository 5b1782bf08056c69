package gcumap

import (
	"slices"
	"strings"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/screen"
)

// branch is one child in the tree: a group under a title, a card, or the holders on no known card.
type branch struct {
	title     string
	children  []branch
	minor     int
	elsewhere []Holder
}

// branches returns what is below a place, by lowest minor, a chain of places that hold only each
// other under one title.
func (p *pen) branches(list []Group, minors []int) []branch {
	var out []branch
	for _, m := range minors {
		out = append(out, branch{minor: m})
	}
	for i := range list {
		g := &list[i]
		titles := []string{title(g)}
		for len(g.Minors) == 0 && len(g.Groups) == 1 {
			g = &g.Groups[0]
			titles = append(titles, title(g))
		}
		out = append(out, branch{title: strings.Join(titles, ", "), children: p.branches(g.Groups, g.Minors), minor: lowest(g)})
	}
	slices.SortFunc(out, func(a, b branch) int { return a.minor - b.minor })
	return out
}

func lowest(g *Group) int {
	low := contract.MaxCards
	for _, m := range g.Minors {
		low = min(low, m)
	}
	for i := range g.Groups {
		low = min(low, lowest(&g.Groups[i]))
	}
	return low
}

// title names a place as lspci does, without the domain where that is 0.
func title(g *Group) string {
	name := strings.TrimPrefix(strings.TrimPrefix(screen.Clean(g.Name), "pci"), "0000:")
	switch g.Kind {
	case NUMA:
		if name == "" {
			name = "unknown"
		}
		return "NUMA " + name
	case RootComplex:
		return "root complex " + name
	}
	return "switch " + name
}

// tree draws branches. closed says that the last of them ends the tree, so that nothing hangs below.
func (p *pen) tree(n *Node, list []branch, prefix string, closed bool) {
	for i := range list {
		b := &list[i]
		stem, below := prefix+p.branch, prefix+p.down
		if closed && i == len(list)-1 {
			stem, below = prefix+p.last, prefix+p.blank
		}
		switch {
		case b.elsewhere != nil:
			r := p.Row()
			r.Put(screen.Faint, stem)
			r.Put(screen.Warn, "holders of unknown cards")
			p.holders(b.elsewhere, below)
		case b.title == "":
			p.card(n, b.minor, stem, below)
		default:
			if screen.Columns(prefix)/screen.Columns(p.down) >= maxDepth {
				p.tree(n, b.children, prefix, closed && i == len(list)-1)
				continue
			}
			r := p.Row()
			r.Put(screen.Faint, stem+screen.Cut(b.title, p.Width()-screen.Columns(stem), p.gap))
			p.tree(n, b.children, below, true)
		}
	}
}
