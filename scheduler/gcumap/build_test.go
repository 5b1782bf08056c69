package gcumap_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/scheduler/gcumap"
	"github.com/topscloud/topscloud/scheduler/surveytest"
)

// The figures of a map are the ledger's, and its counts add up.
func TestBuildAgreesWithLedger(t *testing.T) {
	for name, s := range scenes() {
		l := ledger.New(names)
		for _, n := range s.Nodes {
			l.ObserveNode(n)
		}
		for _, p := range s.Pods {
			l.Observe(p)
		}
		m := build(s)
		absent := false
		for _, node := range m.Nodes {
			want := l.Node(node.Name)
			absent = absent || node.Absent
			if len(want.Cards) != len(node.Cards) {
				t.Fatalf("%s: node %s has %d cards, want %d", name, node.Name, len(node.Cards), len(want.Cards))
			}
			var grouped []int
			for _, g := range node.Groups {
				grouped = append(grouped, minors(g)...)
			}
			if len(grouped) != len(node.Cards) {
				t.Errorf("%s: node %s: groups hold %v, want each card once", name, node.Name, grouped)
			}
			for i, c := range node.Cards {
				var held int64
				for _, h := range c.Holders {
					held += h.MiB
				}
				if c.UsedMiB != want.Cards[i].UsedMiB || held != c.UsedMiB || len(c.Holders) != want.Cards[i].Holders {
					t.Errorf("%s: node %s, card %d: used %d, holders' sum %d, ledger %d", name, node.Name, c.Minor, c.UsedMiB, held, want.Cards[i].UsedMiB)
				}
			}
			if n := node.Totals; n.Free+n.Shared+n.Whole+n.Sick+n.Cordoned+n.Swapped != n.Cards {
				t.Errorf("%s: node %s: %+v do not add up", name, node.Name, n)
			}
		}
		if err := l.Check(); err != nil && !absent { // Check takes a node without Node object for stale
			t.Errorf("%s: %v", name, err)
		}
	}
}

func minors(g gcumap.Group) []int {
	out := g.Minors
	for _, below := range g.Groups {
		out = append(out, minors(below)...)
	}
	return out
}

// The JSON of each scene is kept, so that a change of the format cannot go unseen.
func TestJSON(t *testing.T) {
	for name, s := range scenes() {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetIndent("", " ")
		if err := e.Encode(build(s)); err != nil {
			t.Fatal(err)
		}
		surveytest.Golden(t, "testdata/"+name+".json", b.Bytes())
	}
}

// Every field of the format is explained in the manual.
func TestFormatIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/kubectl-gcu.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[reflect.Type]bool{}
	var visit func(typ reflect.Type)
	visit = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Slice, reflect.Pointer:
			visit(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typ] || !strings.HasSuffix(typ.PkgPath(), "gcumap") {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !strings.Contains(string(text), "`"+key+"`") {
				t.Errorf("%s.%s: the manual does not explain %q", typ.Name(), f.Name, key)
			}
			visit(f.Type)
		}
	}
	visit(reflect.TypeFor[gcumap.Map]())
}
