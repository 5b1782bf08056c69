package share

import (
	"cmp"
	"slices"
)

// Hold is what one container holds on one card.
type Hold struct {
	Phase Phase
	Minor int
	// MiB held; of a whole card, the card's memory.
	MiB   int64
	Whole bool
}

// Charge is what a pod holds on one card.
type Charge struct {
	Minor int
	MiB   int64
	Whole bool
}

// Charges sums the holds of a pod's containers, given in start order, into one charge per card,
// sorted by minor. An init container runs alone but for the sidecars started before it, so until the
// pod is initialized the charge is the largest of all phases, and after that what its sidecars and app
// containers hold together.
func Charges(holds []Hold, initialized bool) []Charge {
	type sum struct {
		minor                int
		side, apps, peak     int64
		wholeRun, wholePhase bool
	}
	var sums []sum
	at := func(minor int) *sum {
		for i := range sums {
			if sums[i].minor == minor {
				return &sums[i]
			}
		}
		sums = append(sums, sum{minor: minor})
		return &sums[len(sums)-1]
	}
	for _, h := range holds {
		s := at(h.Minor)
		switch h.Phase {
		case Init:
			s.peak = max(s.peak, Add(s.side, h.MiB))
			s.wholePhase = s.wholePhase || h.Whole
		case Sidecar:
			s.side = Add(s.side, h.MiB)
			s.wholeRun = s.wholeRun || h.Whole
		default:
			s.apps = Add(s.apps, h.MiB)
			s.wholeRun = s.wholeRun || h.Whole
		}
	}
	out := make([]Charge, 0, len(sums))
	for _, s := range sums {
		c := Charge{Minor: s.minor, MiB: Add(s.side, s.apps), Whole: s.wholeRun}
		if !initialized {
			c.MiB = max(c.MiB, s.peak)
			c.Whole = c.Whole || s.wholePhase
		}
		if c.MiB > 0 || c.Whole {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b Charge) int { return cmp.Compare(a.Minor, b.Minor) })
	return out
}

// Lighter says whether no card is charged more in a than in b, and some less.
func Lighter(a, b []Charge) bool {
	less := len(a) < len(b)
	for _, ca := range a {
		i := slices.IndexFunc(b, func(cb Charge) bool { return cb.Minor == ca.Minor })
		if i < 0 || ca.MiB > b[i].MiB || ca.Whole && !b[i].Whole {
			return false
		}
		less = less || ca.MiB < b[i].MiB || b[i].Whole && !ca.Whole
	}
	return less
}
