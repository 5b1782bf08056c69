package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

const folder = "../../manifests/dashboards"

// TestWritten keeps the files what this module writes, and holds them to Grafana's schema.
func TestWritten(t *testing.T) {
	for name, b := range boards {
		want, err := b.text()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is old: run make dashboards", name)
		}
		var d dashboard.Dashboard
		// A result without an entry is no error, though it is not nil either.
		var wrong cog.BuildErrors
		if err := d.UnmarshalJSONStrict(got); !errors.As(err, &wrong) || len(wrong) > 0 {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

var variableName = regexp.MustCompile(`\$(?:\{([a-z0-9_]+)\}|([a-z0-9_]+))`)

// TestBoards finds titles without a second language, names that stand twice, and variables that are not there.
func TestBoards(t *testing.T) {
	for name, b := range boards {
		known := map[string]bool{"__rate_interval": true, "lang": true, "datasource": true}
		for _, v := range b.variables {
			if used := known[v.name]; used {
				t.Errorf("%s: variable %s stands twice", name, v.name)
			}
			check(t, name, known, v.query)
			known[v.name] = true
		}
		titles := map[words]bool{}
		for _, p := range b.panels {
			if titles[p.title] {
				t.Errorf("%s: title %q stands twice", name, p.title.en)
			}
			titles[p.title] = true
			if !strings.ContainsFunc(p.title.zh, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
				t.Errorf("%s: %q is not in Chinese: %q", name, p.title.en, p.title.zh)
			}
			if strings.ContainsAny(p.title.en+p.title.zh, `"\`) {
				t.Errorf("%s: %q would end its own quotes", name, p.title.en)
			}
			for _, q := range p.queries {
				check(t, name, known, q.expr)
			}
		}
	}
}

func check(t *testing.T, name string, known map[string]bool, text string) {
	t.Helper()
	for _, m := range variableName.FindAllStringSubmatch(text, -1) {
		if v := m[1] + m[2]; !known[v] {
			t.Errorf("%s: %s: no variable %s", name, text, v)
		}
	}
}
