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
	Good
	Warn // to look at
	Bad  // to repair
)

type span struct {
	text  string
	style Style
}

type row struct {
	spans []span
	cols  int
}

func (r *row) put(s Style, text string) {
	if text != "" {
		r.spans = append(r.spans, span{text, s})
		r.cols += Columns(text)
	}
}

// Page is a text of lines no longer than Width. The zero value is an empty page.
type Page struct {
	rows []row
	cut  int // Width unless widened
}

// Widen lifts the limit, for output that is to be searched rather than looked at.
func (p *Page) Widen() { p.cut = 1 << 20 }

func (p *Page) width() int {
	if p.cut > 0 {
		return p.cut
	}
	return Width
}

// Blank adds an empty line.
func (p *Page) Blank() { p.rows = append(p.rows, row{}) }

// Line adds one line, broken where it is too long; the lines after the first are indented by two.
func (p *Page) Line(s Style, text string) { p.Item("", s, text) }

// Item adds a paragraph behind a mark such as "- "; its lines align behind the mark.
func (p *Page) Item(mark string, s Style, text string) {
	indent := Columns(mark)
	if indent == 0 {
		indent = 2
	}
	lines := Wrap(Clean(text), p.width()-indent)
	for i, line := range lines {
		r := row{}
		if i == 0 {
			r.put(s, mark)
		} else {
			r.put(Plain, strings.Repeat(" ", indent))
		}
		r.put(s, line)
		p.rows = append(p.rows, r)
	}
}

var ansi = [...]string{
	Faint: "\x1b[2m", Strong: "\x1b[1m", Good: "\x1b[32m", Warn: "\x1b[33m", Bad: "\x1b[31m",
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
