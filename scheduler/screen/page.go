package screen

import (
	"bufio"
	"io"
	"strings"
)

// Width is the number of columns that a page keeps within.
const Width = 80

// Style is what a piece of text means; the writers turn it into colours.
type Style uint8

// The styles.
const (
	Plain  Style = iota
	Faint        // what is there on every page
	Strong       // titles and names
	Good         // free
	Part         // partly taken
	Full         // taken
	Warn         // to look at
	Bad          // to repair
)

type span struct {
	text  string
	style Style
}

// Row is one line, put together from left to right.
type Row struct {
	spans []span
	cols  int
}

// Put adds text as it is; text from objects must have passed Clean.
func (r *Row) Put(s Style, text string) {
	if text != "" {
		r.spans = append(r.spans, span{text, s})
		r.cols += Columns(text)
	}
}

// To moves on to a column; text that reaches it already is followed by one space.
func (r *Row) To(col int) {
	r.Put(Plain, strings.Repeat(" ", max(col-r.cols, 1)))
}

// Columns returns how many columns the row takes so far.
func (r *Row) Columns() int { return r.cols }

// Page is a text of lines no longer than Width. The zero value is an empty page.
type Page struct {
	rows []*Row
	cut  int // Width unless widened
}

// Widen lifts the limit, for output that is to be searched rather than looked at.
func (p *Page) Widen() { p.cut = 1 << 20 }

// Width returns the number of columns that the page keeps within.
func (p *Page) Width() int {
	if p.cut > 0 {
		return p.cut
	}
	return Width
}

// Row adds a line for the caller to fill, who sees to it that it keeps within the page's width.
func (p *Page) Row() *Row {
	r := &Row{}
	p.rows = append(p.rows, r)
	return r
}

// Blank adds an empty line.
func (p *Page) Blank() { p.Row() }

// Line adds one line, broken where it is too long; the lines after the first are indented by two.
func (p *Page) Line(s Style, text string) { p.Item("", s, text) }

// Item adds a paragraph behind a mark such as "- "; its lines align behind the mark.
func (p *Page) Item(mark string, s Style, text string) {
	indent := Columns(mark)
	if indent == 0 {
		indent = 2
	}
	lines := Wrap(Clean(text), p.Width()-indent)
	for i, line := range lines {
		r := p.Row()
		if i == 0 {
			r.Put(s, mark)
		} else {
			r.Put(Plain, strings.Repeat(" ", indent))
		}
		r.Put(s, line)
	}
}

var ansi = [...]string{
	Faint: "\x1b[2m", Strong: "\x1b[1m", Good: "\x1b[32m", Part: "\x1b[36m", Full: "\x1b[34m", Warn: "\x1b[33m", Bad: "\x1b[31m",
}

// Text writes the page, coloured with ANSI sequences if color is set.
func (p *Page) Text(w io.Writer, color bool) error {
	b := bufio.NewWriter(w)
	for i := range p.rows {
		spans := p.rows[i].spans
		for k, s := range spans {
			text := s.text
			if k == len(spans)-1 {
				text = strings.TrimRight(text, " ")
			}
			if color && ansi[s.style] != "" && text != "" {
				text = ansi[s.style] + text + "\x1b[0m"
			}
			b.WriteString(text)
		}
		b.WriteByte('\n')
	}
	return b.Flush()
}
