package remedy

import (
	"slices"

	"github.com/topscloud/topscloud/gcushare/share"
)

// searchBudget bounds the combinations tried, a few seconds at most on the largest hosts.
const searchBudget = 100_000

// search looks for the fewest things on one node that make the request fit.
type search struct {
	req   *share.Request
	sites []site
	left  int
}

// site is a node with n things to choose from.
type site struct {
	node Node
	n    int
	make func(picks []int) Change
}

// add takes in a node, unless even all of its things together are not enough.
func (s *search) add(n Node, things int, make func([]int) Change) {
	if things == 0 {
		return
	}
	all := upTo(things)
	if c := make(all); c.Proves(n, s.req) {
		s.sites = append(s.sites, site{n, things, make})
	}
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// run tries all sets of one thing, then all of two, and so on. When that takes too long it thins out
// the full sets instead.
func (s *search) run() *Change {
	most := 0
	for _, site := range s.sites {
		most = max(most, site.n)
	}
	s.left = searchBudget
	for size := 1; size <= most; size++ {
		for _, site := range s.sites {
			if size > site.n {
				continue
			}
			if c := s.try(site, size); c != nil {
				return c
			}
			if s.left <= 0 {
				return s.thin()
			}
		}
	}
	return nil
}

// try walks the sets of one size in order, smaller things first.
func (s *search) try(at site, size int) *Change {
	picks := upTo(size)
	for s.left > 0 {
		s.left--
		if c := at.make(picks); c.Proves(at.node, s.req) {
			c.Smallest = true
			return &c
		}
		i := size - 1
		for i >= 0 && picks[i] == at.n-size+i {
			i--
		}
		if i < 0 {
			return nil
		}
		picks[i]++
		for k := i + 1; k < size; k++ {
			picks[k] = picks[k-1] + 1
		}
	}
	return nil
}

// thin leaves out of each full set what can be left out, the largest first.
func (s *search) thin() *Change {
	var best []int
	var at site
	for _, site := range s.sites {
		picks := upTo(site.n)
		for i := site.n - 1; i >= 0; i-- {
			less := slices.DeleteFunc(slices.Clone(picks), func(p int) bool { return p == i })
			if c := site.make(less); len(less) > 0 && c.Proves(site.node, s.req) {
				picks = less
			}
		}
		if best == nil || len(picks) < len(best) {
			best, at = picks, site
		}
	}
	if best == nil {
		return nil
	}
	c := at.make(best)
	return &c
}
