package source_test

import (
	"testing"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/scheduler/repair/source"
)

func FuzzParse(f *testing.F) {
	f.Add("main=4:8192,5:8192")
	f.Add("main=0")
	f.Fuzz(func(t *testing.T, text string) {
		given, err := source.Parse([]string{text})
		if err == nil && len(given) != 1 {
			t.Errorf("%q: %v", text, given)
		}
	})
}

// Whatever a record says, reading what is left of it gives cards that the node has, each once.
func FuzzRecord(f *testing.F) {
	l := ledger.New(ledgertest.Names)
	l.ObserveNode(ledgertest.Node("n1", 16<<10, 16<<10, 16<<10, 16<<10))
	n := l.Node("n1")
	f.Add(`{"version":"v1","node":"n1","containers":[{"name":"main","cards":[{"minor":"3","uuid":"x"}]}]}`)
	f.Add(`{"containers":[{"name":"main","cards":[{"minor":1e300},{"minor":0},{"minor":"0"}]}]}`)
	f.Add(`{"containers":[{"name":"main","cards":[{"minor":7,"uuid":"` + n.Cards[2].UUID + `"}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		pod := ledgertest.Pod("p", ledgertest.Memory(12), ledgertest.Annotate(ledgertest.Names.AllocationKey, text))
		known, err := source.Record{}.Cards(&source.Case{Names: ledgertest.Names, Pod: pod, Node: n})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		for container, picks := range known {
			seen := map[int]bool{}
			for _, p := range picks {
				if n.Index(p.Minor) < 0 || seen[p.Minor] || p.MiB != 0 {
					t.Errorf("%q: container %s on %v", text, container, picks)
				}
				seen[p.Minor] = true
			}
		}
	})
}
