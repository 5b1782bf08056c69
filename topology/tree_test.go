package topology_test

import (
	"strings"
	"testing"

	"github.com/topscloud/topscloud/topology"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cards []topology.Card
		want  string
	}{
		"a minor twice":          {[]topology.Card{{Minor: 3}, {Minor: 3}}, "card 3: listed twice"},
		"a negative minor":       {[]topology.Card{{Minor: -1}}, "card -1: want a minor"},
		"a minor too large":      {[]topology.Card{{Minor: 128}}, "card 128: want a minor"},
		"a nameless bridge":      {[]topology.Card{{Minor: 1, Bridges: []string{"", "pci0000:0c"}}}, "card 1: a bridge without"},
		"a chain without an end": {[]topology.Card{{Minor: 1, Bridges: strings.Split(strings.Repeat("b,", 70)+"r", ",")}}, "card 1: 71 bridges"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := topology.New(tt.cards); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	card := func(minor, numa int, bridges ...string) topology.Card {
		return topology.Card{Minor: minor, NUMA: numa, Bridges: bridges}
	}
	for name, tt := range map[string]struct {
		cards []topology.Card
		want  topology.Level // of minors 0 and 1
	}{
		"one bridge above both":                          {[]topology.Card{card(0, 0, "s", "r"), card(1, 0, "s", "r")}, topology.SameSwitch},
		"a root port above both":                         {[]topology.Card{card(0, 0, "a", "p", "r"), card(1, 0, "b", "p", "r")}, topology.SameSwitch},
		"the root complex only":                          {[]topology.Card{card(0, 0, "a", "r"), card(1, 0, "b", "r")}, topology.SameRootComplex},
		"both directly on the root complex":              {[]topology.Card{card(0, 0, "r"), card(1, 0, "r")}, topology.SameRootComplex},
		"one NUMA node":                                  {[]topology.Card{card(0, 1, "r"), card(1, 1, "q")}, topology.SameNUMA},
		"two NUMA nodes":                                 {[]topology.Card{card(0, 0, "r"), card(1, 1, "q")}, topology.Across},
		"two unknown NUMA nodes":                         {[]topology.Card{card(0, -1, "r"), card(1, -1, "q")}, topology.Across},
		"unknown is not node 0":                          {[]topology.Card{card(0, -1, "r"), card(1, 0, "q")}, topology.Across},
		"no bridges, one NUMA node":                      {[]topology.Card{card(0, 0), card(1, 0)}, topology.SameNUMA},
		"no bridges, unknown":                            {[]topology.Card{card(0, -1), card(1, -1)}, topology.Across},
		"one root complex, two nodes claimed":            {[]topology.Card{card(0, 0, "r"), card(1, 1, "r")}, topology.SameRootComplex},
		"a root complex that contradicts itself":         {[]topology.Card{card(0, 0, "r"), card(2, 1, "r"), card(1, 0, "q")}, topology.Across},
		"a root complex of which one card does not know": {[]topology.Card{card(0, 0, "r"), card(2, -1, "r"), card(1, 0, "q")}, topology.Across},
		"one bridge name below two root complexes":       {[]topology.Card{card(0, -1, "s", "r"), card(1, -1, "s", "q")}, topology.Across},
		"a card that is not there":                       {[]topology.Card{card(0, 0, "s", "r")}, topology.Across},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := mustTree(t, tt.cards)
			if got := tree.Level(0, 1); got != tt.want || tree.Level(1, 0) != got {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if tree.Level(0, 0) != topology.SameCard || tree.Distance(0, 0) != 0 {
				t.Error("a card is not itself")
			}
		})
	}
}

func TestDeeperBridgeIsCloser(t *testing.T) {
	t.Parallel()
	tree := mustTree(t, vendorTree())
	if a, b := tree.Distance(0, 1), tree.Distance(2, 3); a >= b || tree.Level(0, 1) != tree.Level(2, 3) {
		t.Errorf("the pair below the inner switch is at %d, a pair below the outer one at %d", a, b)
	}
}

func TestEmptyMachine(t *testing.T) {
	t.Parallel()
	tree := mustTree(t, nil)
	if c, ok := tree.Best(topology.Query{}); !ok || c != (topology.Choice{Closeness: 100, Left: 100, Intact: 100}) {
		t.Errorf("nothing asked of nothing: %+v, %t", c, ok)
	}
	if _, ok := tree.Best(topology.Query{From: span(0, 7), Count: 1}); ok {
		t.Error("a card out of nothing")
	}
	if tree.Fits(span(0, 7), 1, topology.Across) || tree.Largest(span(0, 7), topology.Across) != 0 {
		t.Error("nothing holds a card")
	}
}

func TestFitsDoesNotAllocate(t *testing.T) {
	tree := mustTree(t, vendorTree())
	if n := testing.AllocsPerRun(100, func() {
		tree.Fits(span(0, 7), 5, topology.SameSwitch)
		tree.Largest(span(0, 7), topology.SameNUMA)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFits(b *testing.B) {
	tree, err := topology.New(fourByFour())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		tree.Fits(span(0, 15), 5, topology.SameSwitch)
	}
}
