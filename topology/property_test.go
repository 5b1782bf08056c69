package topology_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/topscloud/topscloud/topology"
)

// newRand returns a source with a fresh seed, printed so that a failure can be replayed by writing the
// seed here.
func newRand(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func compare(t *testing.T, tree *topology.Tree, o *oracle, q topology.Query) {
	t.Helper()
	got, ok := tree.Best(q)
	want, wantOK := o.best(q)
	if ok != wantOK || got.Cards != want {
		t.Fatalf("cards %+v\nquery %+v\ngot %v (%t), want %v (%t)", o.cards, q, got.Cards, ok, want, wantOK)
	}
	if got.Closeness < 0 || got.Closeness > 100 || got.Left < 0 || got.Left > 100 || got.Intact < got.Left || got.Intact > 100 {
		t.Fatalf("query %+v: ratings out of range: %+v", q, got)
	}
}

func TestBestOfEveryMaskOfEight(t *testing.T) {
	t.Parallel()
	for name, cards := range map[string][]topology.Card{"vendor": vendorTree(), "two switches": twoSwitches()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, o := mustTree(t, cards), newOracle(cards)
			for mask := range uint64(256) {
				for k := range 9 {
					free := topology.Set{mask}
					compare(t, tree, o, topology.Query{From: free, Free: free, Count: k})
				}
			}
		})
	}
}

func TestBestOfRandomMachines(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	for range 1500 {
		n := 1 + r.IntN(10)
		if r.IntN(100) == 0 {
			n = 12
		}
		cards := randomCards(r, n)
		tree, o := mustTree(t, cards), newOracle(cards)
		for range 6 {
			compare(t, tree, o, randomQuery(r, cards))
		}
	}
}

// randomQuery draws a question about the machine, simple and odd ones alike.
func randomQuery(r *rand.Rand, cards []topology.Card) topology.Query {
	pick := func(outOfFour int) topology.Set {
		var s topology.Set
		for _, c := range cards {
			if r.IntN(4) < outOfFour {
				s = s.With(c.Minor)
			}
		}
		return s
	}
	q := topology.Query{From: pick(3 + r.IntN(2)), Count: r.IntN(len(cards) + 2), IgnoreDistance: r.IntN(4) == 0}
	q.Free = q.From
	if r.IntN(2) == 0 {
		q.Free = pick(r.IntN(5))
	}
	if r.IntN(3) == 0 {
		q.Must = q.From.Intersect(pick(1))
	}
	if r.IntN(2) == 0 {
		q.Within = []topology.Level{topology.SameSwitch, topology.SameRootComplex, topology.SameNUMA, topology.Across}[r.IntN(4)]
	}
	if r.IntN(3) == 0 {
		q.Penalty = new([topology.MaxCards]int64)
		for i := range q.Penalty {
			q.Penalty[i] = int64(r.IntN(4)) - 1
		}
	}
	return q
}

func TestPairsOfRandomMachines(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	for range 300 {
		cards := randomCards(r, 1+r.IntN(14))
		tree, o := mustTree(t, cards), newOracle(cards)
		for _, a := range cards {
			for _, b := range cards {
				level, distance := tree.Level(a.Minor, b.Minor), tree.Distance(a.Minor, b.Minor)
				if level != o.level(a, b) || int64(distance) != o.distance(a, b) {
					t.Fatalf("%+v and %+v: %v at %d, want %v at %d", a, b, level, distance, o.level(a, b), o.distance(a, b))
				}
				if a.NUMA < 0 && level == topology.SameNUMA {
					t.Fatalf("%+v and %+v: an unknown node equals something", a, b)
				}
			}
		}
	}
}

func TestOrderOfCardsDoesNotMatter(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	for range 200 {
		cards := randomCards(r, 2+r.IntN(15))
		q := randomQuery(r, cards)
		first, ok := mustTree(t, cards).Best(q)
		for range 5 {
			r.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
			if again, okAgain := mustTree(t, cards).Best(q); again != first || okAgain != ok {
				t.Fatalf("cards %+v\nquery %+v\n%+v in one order, %+v in another", cards, q, first, again)
			}
		}
	}
}

func TestFitsAndLargestAgreeWithBest(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	for range 500 {
		cards := randomCards(r, 1+r.IntN(12))
		tree := mustTree(t, cards)
		q := randomQuery(r, cards)
		q.Must = topology.Set{}
		_, ok := tree.Best(q)
		if fits := tree.Fits(q.From, q.Count, q.Within); fits != ok {
			t.Fatalf("cards %+v\nquery %+v: fits %t, has a best %t", cards, q, fits, ok)
		}
		n := tree.Largest(q.From, q.Within)
		if !tree.Fits(q.From, n, q.Within) || tree.Fits(q.From, n+1, q.Within) {
			t.Fatalf("cards %+v\nquery %+v: %d is not the largest that fits", cards, q, n)
		}
	}
}

// A single card out of a machine of equal switches never breaks a whole innermost pair while some free
// card's partner is busy, whatever that does further up.
func TestOneCardNeverBreaksAPairForNothing(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	tree := mustTree(t, fourByFour())
	whole := func(free topology.Set, m int) bool { return free.Has(m) && free.Has(m^1) }
	for range 3000 {
		free := topology.Set{r.Uint64() & 0xffff}
		got, ok := tree.Best(topology.Query{From: free, Free: free, Count: 1})
		if !ok {
			continue
		}
		chosen := got.Cards.Minors()[0]
		for m := range free.All() {
			if whole(free, chosen) && !whole(free, m) {
				t.Fatalf("free %v: %d breaks a pair while %d is alone", free, chosen, m)
			}
		}
	}
}

// The largest machine, with every second card in use, is answered and agrees with a direct rule: all
// cards of the fullest groups.
func TestBestOfAFullMachine(t *testing.T) {
	t.Parallel()
	var cards []topology.Card
	for m := range topology.MaxCards {
		cards = append(cards, topology.Card{Minor: m, NUMA: m / 64, Bridges: []string{
			string(rune('A' + m/4)), "switch", string(rune('a' + m/16)),
		}})
	}
	tree := mustTree(t, cards)
	got, ok := tree.Best(topology.Query{From: tree.Cards(), Free: topology.Set{0x5555555555555555, 0}, Count: 16})
	if !ok || got.Cards != span(64, 79) || got.Closeness != 100 || got.Left != 100 {
		t.Errorf("got %+v, %t", got, ok)
	}
}
