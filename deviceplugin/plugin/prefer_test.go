package plugin_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/deviceplugin/plugin"
	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/topology"
)

func treeOf(t testing.TB, preset string) *topology.Tree {
	t.Helper()
	m, err := sim.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := m.Topology()
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func upTo(n int) []int {
	var minors []int
	for m := range n {
		minors = append(minors, m)
	}
	return minors
}

func TestPrefer(t *testing.T) {
	t.Parallel()
	vendor, few := treeOf(t, "s60x8"), treeOf(t, "t20x4")
	tests := map[string]struct {
		tree *topology.Tree
		r    plugin.Request
		want []int
	}{
		"two cards of the vendor's tree are the first pair":   {vendor, plugin.Request{Available: upTo(8), Size: 2}, []int{0, 1}},
		"and the next two the second pair":                    {vendor, plugin.Request{Available: []int{2, 3, 4, 5, 6, 7}, Size: 2}, []int{4, 5}},
		"one card breaks no pair":                             {vendor, plugin.Request{Available: upTo(8), Size: 1}, []int{2}},
		"the order of what is available does not matter":      {vendor, plugin.Request{Available: []int{5, 7, 0, 4, 1, 2}, Size: 2}, []int{0, 1}},
		"what must be included is":                            {vendor, plugin.Request{Available: upTo(8), MustInclude: []int{5}, Size: 2}, []int{4, 5}},
		"all of them":                                         {vendor, plugin.Request{Available: upTo(8), Size: 8}, upTo(8)},
		"none":                                                {vendor, plugin.Request{Available: upTo(8)}, []int{}},
		"the one record that waits":                           {vendor, plugin.Request{Available: upTo(8), Size: 2, Waiting: [][]int{{7, 2}}}, []int{2, 7}},
		"a record of another size says nothing":               {vendor, plugin.Request{Available: upTo(8), Size: 2, Waiting: [][]int{{2}, {2, 3, 7}}}, []int{0, 1}},
		"nor does one whose cards are not available":          {vendor, plugin.Request{Available: []int{0, 1, 2, 3}, Size: 2, Waiting: [][]int{{3, 7}}}, []int{0, 1}},
		"nor one without what must be included":               {vendor, plugin.Request{Available: upTo(8), MustInclude: []int{4}, Size: 2, Waiting: [][]int{{2, 3}}}, []int{4, 5}},
		"of two records that wait nobody knows which":         {vendor, plugin.Request{Available: upTo(8), Size: 2, Waiting: [][]int{{2, 3}, {6, 7}}}, []int{0, 1}},
		"of which one does not fit":                           {vendor, plugin.Request{Available: upTo(7), Size: 2, Waiting: [][]int{{2, 3}, {6, 7}}}, []int{2, 3}},
		"two that wait for the same are one answer":           {vendor, plugin.Request{Available: upTo(8), Size: 2, Waiting: [][]int{{2, 3}, {3, 2}}}, []int{2, 3}},
		"a record that cannot be is passed over":              {vendor, plugin.Request{Available: upTo(8), Size: 2, Waiting: [][]int{{2, 2}, {-1, 3}, {6, 7}}}, []int{6, 7}},
		"cards that the tree does not know come last":         {few, plugin.Request{Available: []int{1, 2, 3, 9, 11}, Size: 4}, []int{1, 2, 3, 9}},
		"unless they must be included":                        {few, plugin.Request{Available: []int{0, 1, 2, 3, 9, 11}, MustInclude: []int{11}, Size: 3}, []int{0, 1, 11}},
		"without a tree it is the lowest":                     {nil, plugin.Request{Available: []int{6, 1, 4}, MustInclude: []int{6}, Size: 2}, []int{1, 6}},
		"a tree without any of the available cards, likewise": {few, plugin.Request{Available: []int{8, 7, 9}, Size: 2}, []int{7, 8}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := plugin.Prefer(test.tree, test.r)
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestPreferRefuses(t *testing.T) {
	t.Parallel()
	tree := treeOf(t, "s60x8")
	for want, r := range map[string]plugin.Request{
		"3 cards asked for, 2 available: {0,1}":                    {Available: upTo(2), Size: 3},
		"-1 cards asked for":                                       {Available: upTo(2), Size: -1},
		"cards {4,5} must be included and are not available":       {Available: upTo(4), MustInclude: []int{0, 4, 5}, Size: 3},
		"1 cards asked for, and the 2 of {0,1} must be included":   {Available: upTo(4), MustInclude: []int{0, 1}, Size: 1},
		"available cards: card 1 stands twice":                     {Available: []int{1, 1}, Size: 1},
		"available cards: card 128: want 0 to 127":                 {Available: []int{128}, Size: 1},
		"cards that must be included: card -1: want 0 to 127":      {Available: upTo(2), MustInclude: []int{-1}, Size: 1},
		"cards that must be included: card 0 stands twice":         {Available: upTo(2), MustInclude: []int{0, 0}, Size: 2},
		"1 cards asked for, 0 available: {}":                       {Size: 1},
		"cards {100} must be included and are not available":       {Available: upTo(4), MustInclude: []int{100}, Size: 1},
		"2 cards asked for, and the 3 of {1,2,3} must be included": {Available: upTo(4), MustInclude: []int{3, 2, 1}, Size: 2},
	} {
		if got, err := plugin.Prefer(tree, r); err == nil || err.Error() != want {
			t.Errorf("got %v, %v; want %s", got, err, want)
		}
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for minor := range topology.MaxCards {
		if got, err := plugin.ParseID(plugin.ID(minor)); err != nil || got != minor {
			t.Errorf("%d became %d, %v", minor, got, err)
		}
	}
	for _, id := range []string{"", "-1", "+1", "01", "128", "1 ", "gcu0", "u0001", "99999999999999999999", "٣"} {
		if got, err := plugin.ParseID(id); err == nil {
			t.Errorf("%q is card %d", id, got)
		}
	}
}

// Against all subsets of random machines: the answer is a possible one, and no other is closer together.
func TestPreferAgainstBruteForce(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	for range 2000 {
		var cards []topology.Card
		for m := range 1 + r.IntN(9) {
			c := topology.Card{Minor: m, NUMA: r.IntN(3) - 1}
			for d := r.IntN(4); d > 0; d-- {
				c.Bridges = append(c.Bridges, fmt.Sprintf("b%d-%d", d, r.IntN(2)))
			}
			cards = append(cards, c)
		}
		strange := r.IntN(3) // cards that the tree does not know
		tree, err := topology.New(cards[min(strange, len(cards)):])
		if err != nil {
			t.Fatal(err)
		}
		q := plugin.Request{Size: r.IntN(len(cards) + 1)}
		for _, m := range r.Perm(len(cards)) {
			if r.IntN(4) > 0 {
				q.Available = append(q.Available, m)
				if r.IntN(4) == 0 {
					q.MustInclude = append(q.MustInclude, m)
				}
			}
		}
		for range r.IntN(4) {
			q.Waiting = append(q.Waiting, r.Perm(len(cards))[:r.IntN(len(cards)+1)])
		}
		got, err := plugin.Prefer(tree, q)
		if possible := q.Size <= len(q.Available) && len(q.MustInclude) <= q.Size; !possible {
			if err == nil {
				t.Fatalf("%+v: got %v", q, got)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		check(t, tree, q, got)
	}
}

func check(t *testing.T, tree *topology.Tree, q plugin.Request, got []int) {
	t.Helper()
	in := func(list []int, m int) bool { return slices.Contains(list, m) }
	if len(got) != q.Size || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Fatalf("%+v: got %v", q, got)
	}
	for _, m := range got {
		if !in(q.Available, m) {
			t.Fatalf("%+v: got %v", q, got)
		}
	}
	for _, m := range q.MustInclude {
		if !in(got, m) {
			t.Fatalf("%+v: got %v", q, got)
		}
	}
	fits := map[topology.Set]bool{}
	for _, w := range q.Waiting {
		if s := topology.SetOf(w...); s.Len() == q.Size && topology.SetOf(q.Available...).Contains(s) && s.Contains(topology.SetOf(q.MustInclude...)) {
			fits[s] = true
		}
	}
	if len(fits) == 1 && q.Size > 0 {
		if !fits[topology.SetOf(got...)] {
			t.Fatalf("%+v: got %v, and one record fits", q, got)
		}
		return
	}
	if known := tree.Cards(); !known.Contains(topology.SetOf(q.Available...)) {
		return
	}
	apart := func(cards []int) (sum int) {
		for i, a := range cards {
			for _, b := range cards[:i] {
				sum += tree.Distance(a, b)
			}
		}
		return sum
	}
	for mask := range 1 << len(q.Available) {
		var other []int
		for i, m := range q.Available {
			if mask&(1<<i) != 0 {
				other = append(other, m)
			}
		}
		if len(other) == q.Size && !slices.ContainsFunc(q.MustInclude, func(m int) bool { return !in(other, m) }) && apart(other) < apart(got) {
			t.Fatalf("%+v: got %v, and %v are closer", q, got, other)
		}
	}
}

func BenchmarkPrefer16(b *testing.B) {
	m, err := sim.Preset("s60x8")
	if err != nil {
		b.Fatal(err)
	}
	cards := eflib.TopologyCards(m.Cards)
	for _, c := range eflib.TopologyCards(m.Cards) {
		c.Minor += 8
		for i, bridge := range c.Bridges {
			c.Bridges[i] = "second-" + bridge
		}
		cards = append(cards, c)
	}
	tree, err := topology.New(cards)
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{1, 2, 5, 8} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			q := plugin.Request{Available: upTo(16), Size: size, Waiting: [][]int{{0, 9}, {3, 4}}}
			for b.Loop() {
				if _, err := plugin.Prefer(tree, q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
