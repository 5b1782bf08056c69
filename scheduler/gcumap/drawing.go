package gcumap

import (
	"bufio"
	"io"
	"strings"
)

// style is what a piece of text means; the writers turn it into colours.
type style uint8

const (
	plain  style = iota
	faint        // lines of the tree and what is there on every card
	strong       // names of nodes
	good         // free
	part         // shared
	full         // whole
	warn         // to look at: cordoned, unrecorded, incomplete
	bad          // to repair: sick, closed, unreadable
)

type span struct {
	text  string
	style style
}

// row is a line of spans.
type row struct {
	spans []span
	cols  int
}

func (r *row) put(s style, text string) {
	if text != "" {
		r.spans = append(r.spans, span{text, s})
		r.cols += columns(text)
	}
}

// to moves on to a column; text that reaches it already is followed by one space.
func (r *row) to(col int) {
	r.put(plain, strings.Repeat(" ", max(col-r.cols, 1)))
}

// Drawing is a map as lines of text.
type Drawing struct {
	rows []row
}

func (d *Drawing) row() *row {
	d.rows = append(d.rows, row{})
	return &d.rows[len(d.rows)-1]
}

func (d *Drawing) text(s style, text string) { d.row().put(s, text) }

var ansi = [...]string{
	faint: "\x1b[2m", strong: "\x1b[1m", good: "\x1b[32m", part: "\x1b[36m", full: "\x1b[34m", warn: "\x1b[33m", bad: "\x1b[31m",
}

// Text writes the drawing, coloured with ANSI sequences if color is set.
func (d *Drawing) Text(w io.Writer, color bool) error {
	b := bufio.NewWriter(w)
	for i := range d.rows {
		spans := d.rows[i].spans
		for k, s := range spans {
			text := s.text
			if k == len(spans)-1 {
				text = strings.TrimRight(text, " ")
			}
			if color && ansi[s.style] != "" {
				text = ansi[s.style] + text + "\x1b[0m"
			}
			b.WriteString(text)
		}
		b.WriteByte('\n')
	}
	return b.Flush()
}
