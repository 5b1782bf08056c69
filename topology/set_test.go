package topology_test

import (
	"slices"
	"testing"

	"github.com/topscloud/topscloud/topology"
)

func TestSetAgainstAMap(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	draw := func() (topology.Set, []int) {
		minors := r.Perm(topology.MaxCards)[:r.IntN(5)]
		slices.Sort(minors)
		return topology.SetOf(minors...), minors
	}
	for range 3000 {
		a, as := draw()
		b, bs := draw()
		if !slices.Equal(a.Minors(), as) || a.Len() != len(as) || a.Empty() != (len(as) == 0) || !slices.Equal(slices.Collect(a.All()), as) {
			t.Fatalf("%v is not %v", a, as)
		}
		if got, want := a.Less(b), slices.Compare(as, bs) < 0; got != want {
			t.Fatalf("%v less than %v: %t", a, b, got)
		}
		for m := -1; m <= topology.MaxCards; m++ {
			inA, inB := slices.Contains(as, m), slices.Contains(bs, m)
			if a.Has(m) != inA || a.Union(b).Has(m) != (inA || inB) || a.Intersect(b).Has(m) != (inA && inB) || a.Minus(b).Has(m) != (inA && !inB) {
				t.Fatalf("%v and %v disagree about %d", a, b, m)
			}
			if a.Without(m).Has(m) || a.With(m).Has(m) != (m >= 0 && m < topology.MaxCards) {
				t.Fatalf("%v with and without %d", a, m)
			}
		}
		if a.Contains(b) != b.Minus(a).Empty() {
			t.Fatalf("%v contains %v", a, b)
		}
	}
}

func TestSetString(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]topology.Set{"{}": {}, "{0,1}": topology.SetOf(1, 0), "{63,64,127}": topology.SetOf(127, 63, 64, -1, 128)} {
		if got := s.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestLevelString(t *testing.T) {
	t.Parallel()
	for l, want := range map[topology.Level]string{
		topology.SameCard: "same card", topology.SameSwitch: "same switch", topology.SameRootComplex: "same root complex",
		topology.SameNUMA: "same NUMA node", topology.Across: "across", 9: "level 9",
	} {
		if l.String() != want {
			t.Errorf("got %s, want %s", l, want)
		}
	}
}
