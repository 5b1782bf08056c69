package screen_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/scheduler/screen"
)

func text(t *testing.T, p *screen.Page, color bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Text(&b, color); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPageKeepsWithinItsWidth(t *testing.T) {
	long := strings.Repeat("a node with a long reason ", 12)
	columns := []screen.Column{{Title: "NODE", Max: 20}, {Title: "GCU", Flex: true}, {Title: "OTHER", Flex: true}, {Title: "MIB", Right: true}}
	cells := [][]screen.Cell{
		{{Text: strings.Repeat("n", 63)}, {Text: long}, {Text: "-"}, {Text: "42976"}},
		{{Text: "节点"}, {Text: "一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十"}, {Text: long, Style: screen.Bad}, {Text: "1"}},
		{{Text: "n\x1b[31m"}, {Text: "ok"}, {Text: ""}, {Text: ""}},
	}
	var p screen.Page
	p.Line(screen.Plain, long)
	p.Item("- ", screen.Warn, long)
	p.Blank()
	p.Table(columns, cells)
	for _, color := range []bool{false, true} {
		for line := range strings.Lines(text(t, &p, color)) {
			line = strings.TrimSuffix(line, "\n")
			if !color && (screen.Columns(line) > screen.Width || strings.ContainsRune(line, '\x1b') || strings.HasSuffix(line, " ")) {
				t.Errorf("%d columns: %q", screen.Columns(line), line)
			}
		}
	}
	if svg := string(p.SVG()); strings.ContainsRune(svg, '\x1b') || !strings.HasSuffix(svg, "</svg>\n") {
		t.Errorf("not a picture: %.80q", svg)
	}
}

func TestTable(t *testing.T) {
	var p screen.Page
	p.Table([]screen.Column{{Title: "NAME"}, {Title: "MIB", Right: true}, {Title: "WHY", Flex: true}}, [][]screen.Cell{
		{{Text: "a"}, {Text: "5"}, {Text: "free"}},
		{{Text: "longer"}, {Text: "12345"}, {Text: ""}},
	})
	want := "NAME      MIB  WHY\na           5  free\nlonger  12345\n"
	if diff := cmp.Diff(want, text(t, &p, false)); diff != "" {
		t.Error(diff)
	}
}
