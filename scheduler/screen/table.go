package screen

import "strings"

// Cell is one field of a table.
type Cell struct {
	Text  string
	Style Style
}

// Column says how a column of a table is laid out.
type Column struct {
	Title string
	Right bool // numbers
	// Flex is a column that takes what the others leave and is broken over several lines.
	Flex bool
	// Max bounds a column that is not Flex; longer text loses its middle. 0 means no bound.
	Max int
}

const gap = 2

// Table adds a table. Columns are as wide as their content needs; the flexible ones share what is left
// of the page.
func (p *Page) Table(columns []Column, cells [][]Cell) {
	widths := p.widths(columns, cells)
	titles := make([]Cell, len(columns))
	for i, c := range columns {
		titles[i] = Cell{c.Title, Faint}
	}
	p.tableRow(columns, widths, titles)
	for _, line := range cells {
		p.tableRow(columns, widths, line)
	}
}

func (p *Page) widths(columns []Column, cells [][]Cell) []int {
	widths := make([]int, len(columns))
	var flexible []int
	left := p.Width() - gap*(len(columns)-1)
	for i, c := range columns {
		widths[i] = Columns(c.Title)
		for _, line := range cells {
			widths[i] = max(widths[i], Columns(Clean(line[i].Text)))
		}
		if c.Flex {
			flexible = append(flexible, i)
			continue
		}
		if c.Max > 0 && p.cut == 0 {
			widths[i] = min(widths[i], max(c.Max, Columns(c.Title)))
		}
		left -= widths[i]
	}
	// The narrowest first, so that what it does not need goes to the wider ones.
	for n := len(flexible); n > 0; n-- {
		at := 0
		for k := range flexible {
			if widths[flexible[k]] < widths[flexible[at]] {
				at = k
			}
		}
		i := flexible[at]
		widths[i] = max(min(widths[i], left/n), Columns(columns[i].Title), 8)
		left -= widths[i]
		flexible = append(flexible[:at], flexible[at+1:]...)
	}
	return widths
}

func (p *Page) tableRow(columns []Column, widths []int, cells []Cell) {
	lines := make([][]string, len(cells))
	height := 1
	for i, c := range cells {
		text := Clean(c.Text)
		if columns[i].Flex {
			lines[i] = Wrap(text, widths[i])
		} else {
			lines[i] = []string{Cut(text, widths[i], "…")}
		}
		height = max(height, len(lines[i]))
	}
	for h := range height {
		r := p.Row()
		for i, c := range cells {
			text := ""
			if h < len(lines[i]) {
				text = lines[i][h]
			}
			pad := strings.Repeat(" ", max(widths[i]-Columns(text), 0))
			if columns[i].Right {
				r.Put(Plain, pad)
				pad = ""
			}
			r.Put(c.Style, text)
			if i < len(cells)-1 {
				r.Put(Plain, pad+strings.Repeat(" ", gap))
			}
		}
		for len(r.spans) > 0 && strings.TrimSpace(r.spans[len(r.spans)-1].text) == "" {
			r.spans = r.spans[:len(r.spans)-1]
		}
	}
}
