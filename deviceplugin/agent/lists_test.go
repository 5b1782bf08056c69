package agent

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
)

func machine(cards int) *placement.Node {
	n := &placement.Node{UnitMiB: 1024, SliceCount: 6, Sharing: true}
	for i := range cards {
		n.Cards = append(n.Cards, placement.Card{Minor: i, UUID: fmt.Sprintf("GCU-%d", i), TotalMiB: 16 << 10})
	}
	return n
}

func healthySet(list []kubelet.Device) map[string]bool {
	out := map[string]bool{}
	for _, d := range list {
		if d.Healthy {
			out[d.ID] = true
		}
	}
	return out
}

// For any cards, holders and lists before: healthy IDs are what is free plus what kubelet counts, held ones are
// unhealthy with a proven fault and not otherwise, no ID stands twice, and the next list of the same state is
// the same.
func TestListIsTruthful(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		n := machine(1 + r.IntN(8))
		for i := range n.Cards {
			c := &n.Cards[i]
			c.Sick, c.Cordoned = r.IntN(6) == 0, r.IntN(8) == 0
			if r.IntN(2) == 0 {
				c.Holders, c.UsedMiB, c.Whole = 1, int64(r.IntN(16<<10)), r.IntN(3) == 0
			}
		}
		n.Sharing = r.IntN(5) > 0
		s := supply{kind: share.Kind(r.IntN(share.Kinds)), node: n, held: map[string]bool{}, open: r.IntN(5) > 0}
		names := s.ids(0)
		for range r.IntN(len(names) + 1) {
			s.held[names[r.IntN(len(names))]] = r.IntN(4) == 0
		}
		// Kubelet counts at least what is held; more for pods that are not yet admitted.
		s.counted = int64(len(s.held) + r.IntN(5))
		for range r.IntN(10) {
			s.before = append(s.before, kubelet.Device{ID: names[r.IntN(len(names))], Healthy: r.IntN(2) == 0})
		}
		list := s.list()
		healthy := healthySet(list)
		want := s.counted
		if s.open {
			want += free(n, s.kind)
		}
		if int64(len(healthy)) != want {
			t.Fatalf("%+v: %d healthy IDs, want %d", s, len(healthy), want)
		}
		seen := map[string]bool{}
		for _, d := range list {
			if seen[d.ID] {
				t.Fatalf("%s stands twice", d.ID)
			}
			seen[d.ID] = true
		}
		for id, faulty := range s.held {
			if healthy[id] == faulty || !seen[id] {
				t.Fatalf("%s is held, faulty %t, healthy %t", id, faulty, healthy[id])
			}
		}
		s.before = list
		if again := s.list(); fmt.Sprint(again) != fmt.Sprint(list) {
			t.Fatalf("the list changes by itself:\n%v\n%v", list, again)
		}
	}
}

// Kubelet gives out an ID at the moment in which it is withdrawn. It is healthy again with the next list, and
// another one goes instead.
func TestWithdrawnIDComesBackWhenGiven(t *testing.T) {
	t.Parallel()
	n := machine(1)
	s := supply{kind: share.Memory, node: n, held: map[string]bool{}, open: true}
	s.before = s.list()
	n.Cards[0].UsedMiB, n.Cards[0].Holders = 8<<10, 1
	s.counted = 0
	s.before = s.list()
	withdrawn := ""
	for _, d := range s.before {
		if !d.Healthy {
			withdrawn = d.ID
		}
	}
	s.held[withdrawn], s.counted = false, 1
	n.Cards[0].UsedMiB += 1024
	if healthy := healthySet(s.list()); !healthy[withdrawn] || len(healthy) != 8 {
		t.Errorf("%s healthy %t, %d in all", withdrawn, healthy[withdrawn], len(healthy))
	}
}

func TestIDsOfWholeCardsAreThoseOfFreeCards(t *testing.T) {
	t.Parallel()
	n := machine(4)
	n.Cards[1].Holders, n.Cards[1].Whole, n.Cards[1].UsedMiB = 1, true, 16<<10
	n.Cards[2].Sick = true
	// The pod on card 1 holds ID 1.
	s := supply{kind: share.Whole, node: n, held: map[string]bool{"1": false}, counted: 1, open: true}
	if got := fmt.Sprint(healthySet(s.list())); got != "map[0:true 1:true 3:true]" {
		t.Error(got)
	}
	// A record waits for card 3.
	n.Cards[3].Holders, n.Cards[3].Whole = 1, true
	s.counted, s.wanted = 2, map[int]bool{3: true}
	if got := fmt.Sprint(healthySet(s.list())); got != "map[0:true 1:true 3:true]" {
		t.Error(got)
	}
}

func BenchmarkList(b *testing.B) {
	n := machine(8)
	for i := range n.Cards {
		n.Cards[i].TotalMiB = 48 << 10
	}
	s := supply{kind: share.Memory, node: n, held: map[string]bool{}, open: true}
	for i := range 110 {
		s.held[fmt.Sprintf("u%04d", i)] = false
	}
	s.counted = 110
	s.before = s.list()
	for b.Loop() {
		s.list()
	}
}
