package placement_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/topology"
)

// node makes a sharing node of flat cards with the given memory, unit 1 MiB, all kubelet units free.
func node(t testing.TB, totals ...int64) *placement.Node {
	t.Helper()
	n := &placement.Node{Name: "n", UnitMiB: 1, SliceCount: 6, Sharing: true, Allocatable: share.Totals{1 << 20, 1 << 40, 1 << 20}}
	var leaves []topology.Card
	for i, total := range totals {
		leaves = append(leaves, topology.Card{Minor: i, NUMA: -1})
		n.Cards = append(n.Cards, placement.Card{Minor: i, UUID: "GCU-" + string(rune('a'+i)), TotalMiB: total})
	}
	tree, err := topology.New(leaves)
	if err != nil {
		t.Fatal(err)
	}
	n.Tree = tree
	return n
}

func memory(name string, phase share.Phase, mib int64) share.Container {
	return share.Container{Name: name, Phase: phase, Kind: share.Memory, Amount: mib, Cards: 1}
}

func whole(name string, cards int) share.Container {
	return share.Container{Name: name, Kind: share.Whole, Amount: int64(cards), Cards: cards}
}

func request(cs ...share.Container) *share.Request { return &share.Request{Containers: cs} }

// counted is a request with what kubelet counts for its app containers.
func counted(cs ...share.Container) *share.Request {
	r := request(cs...)
	for _, c := range cs {
		r.Totals[c.Kind] += c.Amount
	}
	return r
}

// used books mib on cards in turn.
func used(n *placement.Node, mib ...int64) *placement.Node {
	for i, m := range mib {
		if m > 0 {
			n.Cards[i].UsedMiB, n.Cards[i].Holders = m, 1
		}
	}
	return n
}

func TestChoose(t *testing.T) {
	t.Parallel()
	sick := node(t, 16)
	sick.Cards[0].Sick = true
	closed := node(t, 16)
	closed.Closed = placement.BadRecord
	private := node(t, 16)
	private.Sharing = false
	unregistered := node(t, 16)
	unregistered.Allocatable = share.Totals{}
	// All cards are held whole, so the agent offers no memory units: that is no sign of its absence.
	full := node(t, 16)
	full.Cards[0].Whole, full.Cards[0].UsedMiB, full.Cards[0].Holders = true, 16, 1
	full.Allocatable, full.Requested = share.Totals{1, 0, 0}, share.Totals{1, 0, 0}
	tight := used(node(t, 16), 4)
	tight.Allocatable, tight.Requested = share.Totals{0, 8, 0}, share.Totals{0, 4, 0}
	tests := map[string]struct {
		node *placement.Node
		req  *share.Request
		want []string // per container
		why  placement.Reason
	}{
		"binpack takes the fuller of two fitting cards": {
			node: used(node(t, 100, 100), 25, 50), req: request(memory("a", share.App, 20)), want: []string{"{1}"},
		},
		"spread takes the emptier of two fitting cards": {
			node: used(node(t, 100, 100), 25, 50), want: []string{"{0}"},
			req: &share.Request{Policy: share.Spread, Containers: []share.Container{memory("a", share.App, 20)}},
		},
		"a share stays off wholly free cards, even smaller ones": {
			node: used(node(t, 16, 48), 0, 8), req: request(memory("a", share.App, 8)), want: []string{"{1}"},
		},
		"two containers land on different cards when no card has room for both": {
			node: node(t, 16, 16), req: request(memory("a", share.App, 10), memory("b", share.App, 12)), want: []string{"{1}", "{0}"},
		},
		"the search goes back when the first choice leaves no room": {
			node: node(t, 30, 20), want: []string{"{1}", "{0}", "{0}"},
			req: request(memory("a", share.App, 20), memory("b", share.App, 19), memory("c", share.App, 10)),
		},
		"an init container reuses the app containers' card": {
			node: node(t, 32, 32), want: []string{"{0}", "{0}", "{0}"},
			req: request(memory("i", share.Init, 30), memory("a", share.App, 4), memory("b", share.App, 4)),
		},
		"an init container beside an earlier sidecar has that much less": {
			node: node(t, 32), why: placement.NoneTogether,
			req: request(memory("s", share.Sidecar, 4), memory("i", share.Init, 30), memory("a", share.App, 4)),
		},
		"a share larger than any card": {
			node: node(t, 16, 16), req: request(memory("a", share.App, 17)), why: placement.TooLarge,
		},
		"no card with room": {
			node: used(node(t, 16), 9), req: request(memory("a", share.App, 8)), why: placement.NoFreeShare,
		},
		"a sick card":                                    {node: sick, req: request(memory("a", share.App, 8)), why: placement.Sick},
		"a closed node":                                  {node: closed, req: request(memory("a", share.App, 8)), why: placement.RecordUnread},
		"a node without the sharing label":               {node: private, req: request(memory("a", share.App, 8)), why: placement.NotSharing},
		"a node whose agent is not there":                {node: unregistered, req: counted(memory("a", share.App, 8)), why: placement.NotRegistered},
		"a node whose cards are all held whole":          {node: full, req: counted(memory("a", share.App, 8)), why: placement.NoFreeShare},
		"fewer units allocatable than the card has free": {node: tight, req: counted(memory("a", share.App, 8)), why: placement.OverAllocatable},
		"more cards than the node has":                   {node: node(t, 16), req: request(whole("a", 2)), why: placement.TooFewCards},
		"more cards than are free":                       {node: used(node(t, 16, 16), 1), req: request(whole("a", 2)), why: placement.NoFreeCard},
		"whole containers that fit one at a time only": {
			node: used(node(t, 16, 16), 1), req: request(whole("a", 1), whole("b", 1)), why: placement.NoneTogether,
		},
		"a share over two cards takes its even part of each": {
			node: used(node(t, 16, 16, 16), 9), want: []string{"{1,2}"},
			req: request(share.Container{Name: "a", Kind: share.Memory, Amount: 16, Cards: 2}),
		},
		"a whole card leaves shared cards alone": {
			node: used(node(t, 16, 16), 1), req: request(whole("a", 1)), want: []string{"{1}"},
		},
		"an unknown uuid leaves no card": {
			node: node(t, 16), why: placement.NoSuchUUID,
			req: &share.Request{Use: []string{"GCU-z"}, Containers: []share.Container{memory("a", share.App, 1)}},
		},
		"whole and shared containers of one pod take different cards": {
			node: node(t, 16, 48), req: request(memory("m", share.App, 40), whole("w", 1)), want: []string{"{1}", "{0}"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, why := placement.Choose(tt.node, tt.req)
			if why != tt.why {
				t.Fatalf("reason %d, want %d", why, tt.why)
			}
			if plan == nil {
				return
			}
			var got []string
			for _, s := range plan.Cards {
				got = append(got, s.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("cards (-want +got):\n%s", diff)
			}
		})
	}
}

// Choose places exactly what any placement could, and never passes a card: compared with trying every
// card for every container.
func TestChooseIsExact(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	fits := 0
	for range 3000 {
		n, req := randomCase(t, rng)
		plan, why := placement.Choose(n, req)
		if want := bruteFits(n, req, nil); (why == placement.Fit) != want {
			t.Fatalf("node %+v request %+v: reason %d, brute force says %t", n.Cards, req.Containers, why, want)
		}
		if (placement.Fits(n, req) == placement.Fit) != (why == placement.Fit) {
			t.Fatalf("node %+v request %+v: Fits and Choose differ", n.Cards, req.Containers)
		}
		if plan == nil {
			continue
		}
		fits++
		if !valid(n, req, plan.Cards) {
			t.Fatalf("node %+v request %+v: plan %v does not fit", n.Cards, req.Containers, plan.Cards)
		}
		for _, c := range plan.Charges(n, req) {
			if card := &n.Cards[c.Minor]; card.UsedMiB+c.MiB > card.TotalMiB {
				t.Fatalf("node %+v request %+v: charge %+v passes the card", n.Cards, req.Containers, c)
			}
		}
	}
	if fits < 500 {
		t.Errorf("only %d of 3000 cases fit; the test looks at too little", fits)
	}
}

func randomCase(t *testing.T, rng *rand.Rand) (*placement.Node, *share.Request) {
	totals := make([]int64, 1+rng.IntN(4))
	for i := range totals {
		totals[i] = 10 + rng.Int64N(20)
	}
	n := node(t, totals...)
	for i := range n.Cards {
		if rng.IntN(2) == 0 {
			n.Cards[i].UsedMiB, n.Cards[i].Holders = rng.Int64N(totals[i]), 1
		}
	}
	var init, app []share.Container
	for i := range 1 + rng.IntN(4) {
		c := memory(string(rune('a'+i)), share.Phase(rng.IntN(3)), 1+rng.Int64N(20))
		if rng.IntN(5) == 0 {
			c.Kind, c.Amount = share.Whole, 1
		}
		if c.Phase == share.App {
			app = append(app, c)
		} else {
			init = append(init, c)
		}
	}
	return n, request(append(init, app...)...)
}

func bruteFits(n *placement.Node, req *share.Request, picks []topology.Set) bool {
	if len(picks) == len(req.Containers) {
		return valid(n, req, picks)
	}
	for i := range n.Cards {
		if bruteFits(n, req, append(picks[:len(picks):len(picks)], topology.SetOf(i))) {
			return true
		}
	}
	return false
}

// valid plays the pod's life: each init phase with the sidecars before it, then all that stays.
func valid(n *placement.Node, req *share.Request, picks []topology.Set) bool {
	together := func(running []int) bool {
		for i := range n.Cards {
			sum, exclusive, count := n.Cards[i].UsedMiB, false, 0
			for _, j := range running {
				if c := &req.Containers[j]; picks[j].Has(i) {
					sum += c.PerCardMiB(n.Cards[i].TotalMiB, n.UnitMiB, n.SliceCount)
					exclusive = exclusive || c.Kind == share.Whole
					count++
				}
			}
			if sum > n.Cards[i].TotalMiB || exclusive && (count > 1 || !n.Cards[i].Free()) {
				return false
			}
		}
		return true
	}
	var side, run []int
	for j := range req.Containers {
		switch req.Containers[j].Phase {
		case share.Init:
			if !together(append(side[:len(side):len(side)], j)) {
				return false
			}
		case share.Sidecar:
			side = append(side, j)
			if !together(side) {
				return false
			}
		default:
			run = append(run, j)
		}
	}
	return together(append(side, run...))
}

func TestFitsAllocatesNothing(t *testing.T) {
	n := used(node(t, 16, 16, 16, 16, 16, 16, 16, 16), 12, 12, 12, 12, 12, 12, 12)
	req := request(memory("a", share.App, 8))
	if got := testing.AllocsPerRun(100, func() { placement.Fits(n, req) }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}
