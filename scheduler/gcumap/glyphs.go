package gcumap

import "strings"

// glyphs are the characters a drawing is made of beside letters and digits.
type glyphs struct {
	branch, last, down, blank string // of the tree, all equally wide
	cell, half, hollow        string // of a bar
	gap, dot, times, atLeast  string
}

var (
	unicodeGlyphs = glyphs{
		branch: "├─ ", last: "└─ ", down: "│  ", blank: "   ",
		cell: "█", half: "▌", hollow: "░",
		gap: "…", dot: "·", times: "×", atLeast: "≥",
	}
	asciiGlyphs = glyphs{
		branch: "|- ", last: "`- ", down: "|  ", blank: "   ",
		cell: "#", half: "=", hollow: ".",
		gap: "..", dot: "-", times: "x", atLeast: ">",
	}
)

// bar returns the two parts of a bar, what is used and what is not. A little use is never drawn as
// none, nor a little room as none.
func (g *glyphs) bar(used, total int64, cells int) (on, off string) {
	steps := int64(2 * cells)
	n := int64(0)
	switch {
	case used >= total:
		n = steps
	case used > 0:
		n = min(max((used*steps+total/2)/total, 1), steps-1) // a card has less than 2^31 MiB
	}
	on = strings.Repeat(g.cell, int(n/2))
	left := cells - int(n/2)
	if n%2 == 1 {
		on += g.half
		left--
	}
	return on, strings.Repeat(g.hollow, left)
}
