package remedy_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/remedy"
	"github.com/topscloud/topscloud/scheduler/surveytest"
)

var names = surveytest.Names

// cluster is a small cluster at random, with pods placed by the chooser and some cards cordoned after.
type cluster struct {
	hosts []*surveytest.Host
	pods  []*v1.Pod
}

func newCluster(r *rand.Rand) *cluster {
	c := &cluster{}
	presets := []string{"t20x4", "t20x4", "s60x8-2sw", "no-numa"}
	for i := range 1 + r.IntN(2) {
		h := surveytest.NewHost(presets[r.IntN(len(presets))], fmt.Sprintf("n%d", i))
		for k := range h.Machine.Cards {
			h.Machine.Cards[k].MemoryMiB = int64(4+r.IntN(5)) * 1024
		}
		c.hosts = append(c.hosts, h)
	}
	l := c.ledger(nil, nil)
	for i := range 3 + r.IntN(12) {
		p := request(r, fmt.Sprintf("p%d", i), 5, 3)
		req, err := share.Parse(names, p, share.Defaults{})
		if err != nil {
			continue
		}
		h := c.hosts[r.IntN(len(c.hosts))]
		n := l.Node(h.Name)
		plan, _ := placement.Choose(&n.Node, req)
		if plan == nil {
			continue
		}
		record := plan.Record(&n.Node, req)
		if err := l.Assume(ledger.Plan(p, h.Name, req, record)); err != nil {
			panic(err)
		}
		text, err := contract.EncodeAllocation(contract.Allocation{Node: h.Name, Containers: record})
		if err != nil {
			panic(err)
		}
		p.Spec.NodeName, p.Annotations = h.Name, map[string]string{names.AllocationKey: text}
		c.pods = append(c.pods, p)
	}
	for _, h := range c.hosts {
		for k := range h.Machine.Cards {
			if r.IntN(4) == 0 {
				h.Cordon = append(h.Cordon, contract.CordonedCard{Minor: h.Machine.Cards[k].Minor})
			}
		}
	}
	return c
}

func request(r *rand.Rand, name string, units, cards int64) *v1.Pod {
	var parts []surveytest.Work
	for i := range 1 + r.IntN(5)/4 {
		w := surveytest.Work{Name: fmt.Sprintf("c%d", i), Resource: names.ResourceMemory, Amount: 1 + r.Int64N(units)}
		if r.IntN(3) == 0 {
			w.Resource, w.Amount = names.ResourceWhole, 1+r.Int64N(cards)
		}
		parts = append(parts, w)
	}
	p := surveytest.Waiting("ns", name, parts...)
	p.Annotations[names.TopologyKey] = []string{"best-effort", "same-switch", "same-switch", "same-numa"}[r.IntN(4)]
	if r.IntN(3) == 0 {
		p.Annotations[names.CardsKey] = "2"
	}
	return p
}

// ledger builds a ledger from the objects anew, with some cards uncordoned and some pods gone: the way
// the scheduler will see the cluster once the change was made.
func (c *cluster) ledger(open map[string][]int, gone []types.UID) *ledger.Ledger {
	l := ledger.New(names)
	for _, h := range c.hosts {
		changed := *h
		changed.Node = h.Node.DeepCopy()
		changed.Cordon = slices.DeleteFunc(slices.Clone(h.Cordon), func(cc contract.CordonedCard) bool { return slices.Contains(open[h.Name], cc.Minor) })
		l.ObserveNode(changed.Object())
	}
	for _, p := range c.pods {
		if !slices.Contains(gone, p.UID) {
			l.Observe(p)
		}
	}
	return l
}

// fits says whether a request fits any node of a changed cluster. Kubelet's allocatable is left out, as
// the agent changes it together with the cards.
func (c *cluster) fits(req *share.Request, open map[string][]int, gone ...types.UID) bool {
	l := c.ledger(open, gone)
	for _, h := range c.hosts {
		n := l.Node(h.Name).Node
		n.Trial = true
		if placement.Fits(&n, req) == placement.Fit {
			return true
		}
	}
	return false
}

func (c *cluster) nodes() []remedy.Node {
	l := c.ledger(nil, nil)
	var out []remedy.Node
	for _, h := range c.hosts {
		n := remedy.Node{Node: l.Node(h.Name)}
		for _, holder := range n.Holders() {
			leaver := remedy.Leaver{UID: holder.UID, Namespace: holder.Namespace, Name: holder.Name}
			for _, charge := range n.ChargesOf(holder) {
				leaver.MiB += charge.MiB
			}
			n.Leavers = append(n.Leavers, leaver)
		}
		out = append(out, n)
	}
	return out
}

// Each change found makes the request fit once it is made, and nothing smaller of its kind does; where
// none of a kind is found, none exists.
func TestChangesAreProvenAndSmallest(t *testing.T) {
	t.Parallel()
	found := map[remedy.Kind]int{}
	tried, wanted := 0, 150
	if os.Getenv("TOPSCLOUD_TEST_FULL") != "" {
		wanted = 3000
	}
	for seed := uint64(0); tried < wanted; seed++ {
		r := rand.New(rand.NewPCG(seed, 7))
		c := newCluster(r)
		req, err := share.Parse(names, request(r, "asked", 14, 9), share.Defaults{})
		if err != nil || c.fits(req, nil) {
			continue
		}
		tried++
		byKind := map[remedy.Kind]*remedy.Change{}
		changes := remedy.Find(c.nodes(), req)
		for i := range changes {
			byKind[changes[i].Kind] = &changes[i]
			found[changes[i].Kind]++
			if !changes[i].Smallest {
				t.Errorf("seed %d: %+v: not the smallest", seed, changes[i])
			}
		}
		c.checkTopology(t, seed, req, byKind[remedy.Topology])
		c.checkLessMemory(t, seed, req, byKind[remedy.LessMemory])
		c.checkFewerCards(t, seed, req, byKind[remedy.FewerCards])
		c.checkUncordon(t, seed, req, byKind[remedy.Uncordon])
		c.checkFinish(t, seed, req, byKind[remedy.Finish])
	}
	for _, kind := range []remedy.Kind{remedy.Topology, remedy.LessMemory, remedy.FewerCards, remedy.Uncordon, remedy.Finish} {
		if found[kind] < 3 {
			t.Errorf("%s was found %d times: the clusters are no test of it", kind, found[kind])
		}
	}
	t.Logf("%d requests, changes found: %v", tried, found)
}

func (c *cluster) checkTopology(t *testing.T, seed uint64, req *share.Request, got *remedy.Change) {
	t.Helper()
	with := func(to share.Topology) bool { looser := *req; looser.Topology = to; return c.fits(&looser, nil) }
	switch {
	case got != nil && !c.fits(got.Request(req), nil):
		t.Errorf("seed %d: %+v does not help", seed, *got)
	case got != nil && got.Topology == share.BestEffort && req.Topology == share.SameSwitch && with(share.SameNUMA):
		t.Errorf("seed %d: same-numa would do", seed)
	case got == nil && (req.Topology == share.SameSwitch || req.Topology == share.SameNUMA) && with(share.BestEffort):
		t.Errorf("seed %d: best-effort would do", seed)
	}
}

// reduced returns the request with one container's amount changed.
func reduced(req *share.Request, i int, amount int64) *share.Request {
	list := slices.Clone(req.Containers)
	list[i].Amount = amount
	if !list[i].Kind.Fractional() {
		list[i].Cards = int(amount)
	}
	return req.With(list)
}

func (c *cluster) checkLessMemory(t *testing.T, seed uint64, req *share.Request, got *remedy.Change) {
	t.Helper()
	if got != nil && !c.fits(got.Request(req), nil) {
		t.Errorf("seed %d: %+v does not help", seed, *got)
	}
	for i, cont := range req.Containers {
		for amount := cont.Amount - int64(cont.Cards); cont.Kind.Fractional() && amount > 0; amount -= int64(cont.Cards) {
			if (got == nil || cont.Amount-amount < got.From-got.To) && c.fits(reduced(req, i, amount), nil) {
				t.Errorf("seed %d: %s with %d would do, found %+v", seed, cont.Name, amount, got)
			}
		}
	}
}

func (c *cluster) checkFewerCards(t *testing.T, seed uint64, req *share.Request, got *remedy.Change) {
	t.Helper()
	if got != nil && !c.fits(got.Request(req), nil) {
		t.Errorf("seed %d: %+v does not help", seed, *got)
	}
	if got != nil && got.Container == "" {
		return
	}
	for i, cont := range req.Containers {
		for amount := cont.Amount - 1; !cont.Kind.Fractional() && amount > 0; amount-- {
			if (got == nil || cont.Amount-amount < got.From-got.To) && c.fits(reduced(req, i, amount), nil) {
				t.Errorf("seed %d: %s with %d cards would do, found %+v", seed, cont.Name, amount, got)
			}
		}
	}
}

func (c *cluster) checkUncordon(t *testing.T, seed uint64, req *share.Request, got *remedy.Change) {
	t.Helper()
	size := 1 << 20
	if got != nil {
		if size = len(got.Minors); !c.fits(req, map[string][]int{got.Node: got.Minors}) {
			t.Errorf("seed %d: %+v does not help", seed, *got)
		}
	}
	for _, h := range c.hosts {
		for mask := 1; mask < 1<<len(h.Cordon); mask++ {
			var open []int
			for i, cc := range h.Cordon {
				if mask>>i&1 == 1 {
					open = append(open, cc.Minor)
				}
			}
			if len(open) < size && c.fits(req, map[string][]int{h.Name: open}) {
				t.Errorf("seed %d: cards %v of %s would do, found %+v", seed, open, h.Name, got)
			}
		}
	}
}

func (c *cluster) checkFinish(t *testing.T, seed uint64, req *share.Request, got *remedy.Change) {
	t.Helper()
	size := 1 << 20
	if got != nil {
		var gone []types.UID
		for _, p := range got.Pods {
			gone = append(gone, p.UID)
		}
		if size = len(gone); !c.fits(req, nil, gone...) {
			t.Errorf("seed %d: %+v does not help", seed, *got)
		}
	}
	for _, h := range c.hosts {
		var here []types.UID
		for _, p := range c.pods {
			if p.Spec.NodeName == h.Name {
				here = append(here, p.UID)
			}
		}
		for mask := 1; mask < 1<<len(here); mask++ {
			var gone []types.UID
			for i, uid := range here {
				if mask>>i&1 == 1 {
					gone = append(gone, uid)
				}
			}
			// Sets of more pods than two are many; those without any found are looked at whole.
			if len(gone) < size && (len(gone) <= 2 || len(gone) == len(here)) && c.fits(req, nil, gone...) {
				t.Errorf("seed %d: %v on %s finishing would do, found %+v", seed, gone, h.Name, got)
			}
		}
	}
}

// Where cards and CPU are both short, those pods are named whose end gives back both; pods that hold no
// card may be among them.
func TestFinishMindsWhatElseIsShort(t *testing.T) {
	t.Parallel()
	h := surveytest.NewHost("t20x4", "n1")
	c := &cluster{hosts: []*surveytest.Host{h}, pods: []*v1.Pod{h.Pod("ns", "holder", surveytest.Whole("m", 0, 1, 2, 3))}}
	req, err := share.Parse(names, surveytest.Waiting("ns", "asked", surveytest.Memory("m", 8)), share.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	nodes := c.nodes()
	nodes[0].Leavers = append(nodes[0].Leavers, remedy.Leaver{UID: "cpu-hog", Namespace: "ns", Name: "hog"})
	nodes[0].Others = func(gone map[types.UID]bool) bool { return gone["cpu-hog"] }
	changes := remedy.Find(nodes, req)
	if len(changes) != 1 || changes[0].Kind != remedy.Finish || len(changes[0].Pods) != 2 {
		t.Errorf("got %+v, want both pods", changes)
	}
	// A label that forbids the node forbids it whoever leaves.
	nodes[0].Others = func(map[types.UID]bool) bool { return false }
	if changes := remedy.Find(nodes, req); len(changes) != 0 {
		t.Errorf("got %+v, want nothing", changes)
	}
}

// A node whose agent has not registered with kubelet is none that a change helps on.
func TestNothingHelpsWithoutAgent(t *testing.T) {
	t.Parallel()
	h := surveytest.NewHost("t20x4", "n1")
	h.Cordon = []contract.CordonedCard{{Minor: 0}, {Minor: 1}, {Minor: 2}, {Minor: 3}}
	node := h.Object()
	for _, name := range []string{names.ResourceWhole, names.ResourceMemory, names.ResourceSlice} {
		delete(node.Status.Allocatable, v1.ResourceName(name))
	}
	l := ledger.New(names)
	l.ObserveNode(node)
	req, err := share.Parse(names, surveytest.Waiting("ns", "asked", surveytest.Memory("m", 8)), share.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	if changes := remedy.Find([]remedy.Node{{Node: l.Node("n1")}}, req); len(changes) != 0 {
		t.Errorf("got %+v, want nothing", changes)
	}
}
