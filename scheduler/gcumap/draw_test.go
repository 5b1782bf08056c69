package gcumap_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/scheduler/gcumap"
	"github.com/topscloud/topscloud/scheduler/screen"
	"github.com/topscloud/topscloud/scheduler/surveytest"
)

func text(t *testing.T, m *gcumap.Map, o gcumap.DrawOptions, color bool) string {
	t.Helper()
	o.Names = names
	var b bytes.Buffer
	if err := gcumap.Draw(m, o).Text(&b, color); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDraw(t *testing.T) {
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			m := build(s)
			got := text(t, m, gcumap.DrawOptions{}, false)
			surveytest.Golden(t, "testdata/"+name+".txt", []byte(got))
			surveytest.Golden(t, "testdata/"+name+".wide.txt", []byte(text(t, m, gcumap.DrawOptions{Wide: true}, false)))
			for _, ascii := range []bool{false, true} {
				for line := range strings.Lines(text(t, m, gcumap.DrawOptions{ASCII: ascii}, false)) {
					line = strings.TrimSuffix(line, "\n")
					if n := screen.Columns(line); n > screen.Width {
						t.Errorf("%d columns, want at most %d: %s", n, screen.Width, line)
					}
					if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' }) || strings.HasSuffix(line, " ") {
						t.Errorf("control characters or blanks at the end: %q", line)
					}
				}
			}
		})
	}
}

// The pictures of the documentation are the example scene, drawn by the code that users run.
func TestPictures(t *testing.T) {
	m := build(example())
	surveytest.Golden(t, "../../docs/pictures/map.txt", []byte(text(t, m, gcumap.DrawOptions{}, false)))
	svg := gcumap.Draw(m, gcumap.DrawOptions{Names: names}).SVG()
	surveytest.Golden(t, "../../docs/pictures/map.svg", svg)
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestColorAddsNothingButColor(t *testing.T) {
	codes := strings.NewReplacer("\x1b[0m", "", "\x1b[1m", "", "\x1b[2m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "", "\x1b[34m", "", "\x1b[36m", "")
	for name, s := range scenes() {
		m := build(s)
		colored := text(t, m, gcumap.DrawOptions{}, true)
		if diff := cmp.Diff(text(t, m, gcumap.DrawOptions{}, false), codes.Replace(colored)); diff != "" {
			t.Errorf("%s (-plain +coloured):\n%s", name, diff)
		}
	}
}

func TestOrderOfObjectsDoesNotMatter(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(scenes())) {
		s := scenes()[name]
		want := build(s)
		slices.Reverse(s.Nodes)
		slices.Reverse(s.Pods)
		if diff := cmp.Diff(want, build(s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
