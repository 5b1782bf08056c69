package remedy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
)

// scanLimit bounds the amounts that are tried one by one. Above it the largest is found by halving,
// which is exact for a pod of one container.
const scanLimit = 512

// Find returns the smallest change of each kind that makes a request fit one of the nodes, which it
// does not fit as they are.
func Find(nodes []Node, req *share.Request) []Change {
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	nodes = slices.DeleteFunc(nodes, func(n Node) bool { return !registered(&n.Node.Node, req) })
	var out []Change
	for _, find := range []func([]Node, *share.Request) *Change{topology, lessMemory, fewerCards, uncordon, finish} {
		if c := find(nodes, req); c != nil {
			out = append(out, *c)
		}
	}
	return out
}

// registered says whether kubelet offers, or ever offered, what the request asks for.
func registered(n *placement.Node, req *share.Request) bool {
	if len(n.Cards) == 0 {
		return false
	}
	for k, asked := range req.Totals {
		if asked > 0 && n.Allocatable[k] == 0 && n.Requested[k] == 0 {
			return false
		}
	}
	return true
}

// first completes a change with the first node on which it works, nil if there is none.
func first(nodes []Node, req *share.Request, c Change) *Change {
	for _, n := range nodes {
		if c.Proves(n, req) {
			c.Node, c.Smallest = n.Name, true
			return &c
		}
	}
	return nil
}

func topology(nodes []Node, req *share.Request) *Change {
	var weaker []share.Topology
	switch req.Topology {
	case share.SameSwitch:
		weaker = []share.Topology{share.SameNUMA, share.BestEffort}
	case share.SameNUMA:
		weaker = []share.Topology{share.BestEffort}
	}
	for _, t := range weaker {
		if c := first(nodes, req, Change{Kind: Topology, Topology: t}); c != nil {
			return c
		}
	}
	return nil
}

// smaller returns, over the containers it applies to, the change that takes least away.
func smaller(nodes []Node, req *share.Request, kind Kind, applies func(*share.Container) bool) *Change {
	var best *Change
	for i := range req.Containers {
		cont := &req.Containers[i]
		if !applies(cont) {
			continue
		}
		step := int64(1)
		if cont.Kind.Fractional() {
			step = int64(max(cont.Cards, 1))
		}
		c := largest(nodes, req, Change{Kind: kind, Container: cont.Name, From: cont.Amount, Resource: cont.Kind}, step)
		if c != nil && (best == nil || c.From-c.To < best.From-best.To) {
			best = c
		}
	}
	return best
}

// largest finds the largest amount below From that fits, in steps.
func largest(nodes []Node, req *share.Request, c Change, step int64) *Change {
	try := func(k int64) *Change { // k steps
		c.To = k * step
		return first(nodes, req, c)
	}
	top := c.From/step - 1
	if top <= scanLimit {
		for k := top; k > 0; k-- {
			if found := try(k); found != nil {
				return found
			}
		}
		return nil
	}
	lo, hi := int64(0), top // lo fits or is none, all above hi do not
	var best *Change
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		if found := try(mid); found != nil {
			best, lo = found, mid
		} else {
			hi = mid - 1
		}
	}
	if best != nil {
		best.Smallest = len(req.Containers) == 1
	}
	return best
}

func lessMemory(nodes []Node, req *share.Request) *Change {
	return smaller(nodes, req, LessMemory, func(c *share.Container) bool { return c.Kind.Fractional() })
}

// fewerCards asks for fewer whole cards, or has shares spread over fewer cards.
func fewerCards(nodes []Node, req *share.Request) *Change {
	best := smaller(nodes, req, FewerCards, func(c *share.Container) bool { return !c.Kind.Fractional() })
	if best != nil {
		return best
	}
	over := 0
	for i := range req.Containers {
		if c := &req.Containers[i]; c.Kind.Fractional() {
			over = c.Cards
		}
	}
	for k := over - 1; k > 0; k-- {
		divides := !slices.ContainsFunc(req.Containers, func(c share.Container) bool {
			return c.Kind.Fractional() && c.Amount%int64(k) != 0
		})
		if !divides {
			continue
		}
		if c := first(nodes, req, Change{Kind: FewerCards, From: int64(over), To: int64(k)}); c != nil {
			return c
		}
	}
	return nil
}

func uncordon(nodes []Node, req *share.Request) *Change {
	s := search{req: req}
	for _, n := range nodes {
		var minors []int
		for i := range n.Cards {
			if n.Cards[i].Cordoned {
				minors = append(minors, n.Cards[i].Minor)
			}
		}
		s.add(n, len(minors), func(picks []int) Change {
			c := Change{Kind: Uncordon, Node: n.Name}
			for _, i := range picks {
				c.Minors = append(c.Minors, minors[i])
			}
			return c
		})
	}
	return s.run()
}

func finish(nodes []Node, req *share.Request) *Change {
	s := search{req: req}
	for _, n := range nodes {
		leavers := slices.Clone(n.Leavers)
		slices.SortFunc(leavers, func(a, b Leaver) int {
			return cmp.Or(ending(b)-ending(a), cmp.Compare(a.MiB, b.MiB), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		s.add(n, len(leavers), func(picks []int) Change {
			c := Change{Kind: Finish, Node: n.Name}
			for _, i := range picks {
				c.Pods = append(c.Pods, leavers[i])
			}
			return c
		})
	}
	return s.run()
}

func ending(l Leaver) int {
	if l.Ending {
		return 1
	}
	return 0
}
