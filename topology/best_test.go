package topology_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/topscloud/topscloud/topology"
)

func TestBestExamples(t *testing.T) {
	t.Parallel()
	all := span(0, 7)
	set := topology.SetOf
	tests := map[string]struct {
		cards      []topology.Card
		from, must topology.Set
		used       topology.Set // not free, though it may be chosen from
		count      int
		within     topology.Level
		want       topology.Set // empty: no choice
		closeness  int
	}{
		"the vendor's tree gives the first pair":                  {cards: vendorTree(), from: all, count: 2, want: set(0, 1), closeness: 100},
		"the vendor's tree gives the second pair next":            {cards: vendorTree(), from: span(2, 7), count: 2, want: set(4, 5), closeness: 100},
		"one card does not break a pair":                          {cards: vendorTree(), from: all, count: 1, want: set(2), closeness: 100},
		"one card goes to the half that is broken already":        {cards: vendorTree(), from: all.Minus(set(2)), count: 1, want: set(3), closeness: 100},
		"one card whose partner is busy goes first":               {cards: vendorTree(), from: all.Minus(set(0)), count: 1, want: set(1), closeness: 100},
		"four cards are one half":                                 {cards: vendorTree(), from: all.Minus(set(1)), count: 4, want: span(4, 7), closeness: 100},
		"five cards take the other half's lone card":              {cards: vendorTree(), from: all, count: 5, want: set(0, 1, 2, 3, 6), closeness: 60},
		"same switch never spans the halves":                      {cards: vendorTree(), from: all, count: 5, within: topology.SameSwitch},
		"same switch holds with a card that must be in":           {cards: vendorTree(), from: all, must: set(7), count: 2, within: topology.SameSwitch, want: set(6, 7), closeness: 100},
		"cards that must be in may break the limit":               {cards: vendorTree(), from: all, must: set(0, 7), count: 2, within: topology.SameSwitch},
		"a must outside from":                                     {cards: vendorTree(), from: set(0, 1), must: set(2), count: 2},
		"more musts than cards":                                   {cards: vendorTree(), from: all, must: set(0, 1, 2), count: 2},
		"two switches: a pair of a broken four goes first":        {cards: twoSwitches(), from: all.Minus(set(4, 5)), count: 2, want: set(6, 7), closeness: 100},
		"two switches: one card comes from the odd switch":        {cards: twoSwitches(), from: all.Minus(set(6)), count: 1, want: set(4), closeness: 100},
		"two switches: a card in use spares a free one":           {cards: twoSwitches(), from: all, used: set(5), count: 1, want: set(5), closeness: 100},
		"two switches: a whole four is spared for three":          {cards: twoSwitches(), from: all.Minus(set(7)), count: 3, want: set(4, 5, 6), closeness: 100},
		"sixteen cards: a pair of a broken four":                  {cards: fourByFour(), from: span(0, 15).Minus(set(12)), count: 2, want: set(14, 15), closeness: 100},
		"sixteen cards: one card whose partner is busy":           {cards: fourByFour(), from: span(0, 15).Minus(set(12)), count: 1, want: set(13), closeness: 100},
		"sixteen cards: eight of one socket":                      {cards: fourByFour(), from: span(0, 15).Minus(set(3)), count: 8, want: span(8, 15), closeness: 71},
		"no card at all":                                          {cards: vendorTree(), count: 1},
		"minors that are no cards do not help":                    {cards: vendorTree(), from: set(1, 100), count: 2},
		"a negative count":                                        {cards: vendorTree(), from: all, count: -1},
		"same NUMA: a root complex without a node counts as near": {cards: caseThirteen(-1), from: span(0, 2), count: 2, within: topology.SameNUMA, want: set(0, 1), closeness: 60},
		"same NUMA: unknown nodes are not one node":               {cards: caseThirteen(-1), from: set(0, 2), count: 2, within: topology.SameNUMA},
		"same NUMA: a known node is":                              {cards: caseThirteen(0), from: set(0, 2), count: 2, within: topology.SameNUMA, want: set(0, 2), closeness: 50},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := mustTree(t, tt.cards).Best(topology.Query{
				From: tt.from, Must: tt.must, Count: tt.count, Free: tt.from.Minus(tt.used), Within: tt.within,
			})
			if ok == tt.want.Empty() || got.Cards != tt.want || got.Closeness != tt.closeness {
				t.Errorf("got %v, %t, want %v with closeness %d", got, ok, tt.want, tt.closeness)
			}
		})
	}
}

// caseThirteen is a machine with two flat root complexes and one switch. A tree that looks at
// address-shaped parts only and drops the root complex sees {0,1} and {0,2} as equally far.
func caseThirteen(numa int) []topology.Card {
	return []topology.Card{
		{Minor: 0, NUMA: numa, Bridges: []string{"pci0002:00"}},
		{Minor: 1, NUMA: numa, Bridges: []string{"pci0002:00"}},
		{Minor: 2, NUMA: numa, Bridges: []string{"pci0003:00"}},
		{Minor: 3, NUMA: numa, Bridges: []string{"0004:01:00.0", "0004:00:00.0", "pci0004:00"}},
		{Minor: 4, NUMA: numa, Bridges: []string{"0004:01:00.0", "0004:00:00.0", "pci0004:00"}},
	}
}

func TestBestFlatTree(t *testing.T) {
	t.Parallel()
	set := topology.SetOf
	r := rand.New(rand.NewPCG(13, 13))
	for range 50 {
		for _, numa := range []int{-1, 0} {
			cards := caseThirteen(numa)
			r.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
			tree := mustTree(t, cards)
			for _, step := range []struct{ from, want topology.Set }{
				{span(0, 4), set(3, 4)}, {span(0, 3), set(0, 1)}, {set(0, 2, 3), set(0, 2)},
			} {
				got, ok := tree.Best(topology.Query{From: step.from, Free: step.from, Count: 2})
				if !ok || got.Cards != step.want {
					t.Fatalf("from %v got %v, want %v", step.from, got.Cards, step.want)
				}
			}
			near, mid, far := tree.Distance(3, 4), tree.Distance(0, 1), tree.Distance(0, 2)
			if near >= mid || mid >= far {
				t.Fatalf("distances %d, %d, %d do not grow", near, mid, far)
			}
			want := topology.SameNUMA
			if numa < 0 {
				want = topology.Across
			}
			if l := tree.Level(0, 2); l != want {
				t.Fatalf("NUMA %d: cards 0 and 2 are %v", numa, l)
			}
		}
	}
}

func TestChoiceRatings(t *testing.T) {
	t.Parallel()
	tree := mustTree(t, twoSwitches())
	busy, _ := tree.Best(topology.Query{From: span(0, 7), Count: 2})
	if busy.Left != 100 || busy.Intact != 100 {
		t.Errorf("nothing was free, nothing is lost: %+v", busy)
	}
	whole, _ := tree.Best(topology.Query{From: span(0, 1), Free: span(0, 1), Count: 2})
	if whole.Left != 0 || whole.Intact != 100 {
		t.Errorf("the last pair taken whole: %+v", whole)
	}
	broken, _ := tree.Best(topology.Query{From: span(0, 1), Free: span(0, 1), Count: 1})
	if broken.Left >= 50 || broken.Intact >= 50 {
		t.Errorf("the last pair broken: %+v", broken)
	}
	four, _ := tree.Best(topology.Query{From: span(0, 7), Free: span(0, 7), Count: 4})
	two, _ := tree.Best(topology.Query{From: span(0, 7), Free: span(0, 7), Count: 2})
	if four.Intact <= two.Intact {
		t.Errorf("a whole switch of an empty machine %+v breaks more than half a switch %+v", four, two)
	}
}

func TestBestDoesNotAllocate(t *testing.T) {
	tree := mustTree(t, fourByFour())
	for k := range 17 {
		q := topology.Query{From: span(0, 15), Free: topology.SetOf(0, 2, 4, 6, 8, 10, 12, 14), Count: k, Penalty: new([128]int64)}
		if n := testing.AllocsPerRun(10, func() { tree.Best(q) }); n != 0 {
			t.Errorf("count %d: %v allocations", k, n)
		}
	}
}

func BenchmarkBest16(b *testing.B) {
	nested, err := topology.New(fourByFour())
	if err != nil {
		b.Fatal(err)
	}
	var cards []topology.Card
	for m := range 16 {
		cards = append(cards, topology.Card{Minor: m, Bridges: []string{"switch", "root"}})
	}
	flat, err := topology.New(cards)
	if err != nil {
		b.Fatal(err)
	}
	all, half := span(0, 15), topology.SetOf(1, 2, 5, 6, 9, 10, 13, 14)
	for _, m := range []struct {
		name string
		tree *topology.Tree
		free topology.Set
	}{{"nested", nested, all}, {"flat", flat, all}, {"half-free", nested, half}, {"half-free-flat", flat, half}} {
		for k := 1; k <= 16; k++ {
			b.Run(fmt.Sprintf("%s/k=%d", m.name, k), func(b *testing.B) {
				for b.Loop() {
					m.tree.Best(topology.Query{From: all, Free: m.free, Count: k})
				}
			})
		}
	}
}
