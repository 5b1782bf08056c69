package ledger_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/internal/contract"
)

// Case 10: a running pod's record that cannot be read closes the node until it is repaired or the pod is
// gone, with two such pods only after both.
func TestUnreadableRecordsCloseTheNode(t *testing.T) {
	t.Parallel()
	record := func(card string) string {
		return `{"version":"v1","node":"n","containers":[{"name":"app","cards":[{` + card + `}]}]}`
	}
	texts := map[string]string{
		"minor with a comma":            record(`"minor":"0,","uuid":"GCU-n-0","memoryMiB":12288`),
		"minor of no card":              record(`"minor":7,"uuid":"GCU-n-7","memoryMiB":12288`),
		"size in words":                 record(`"minor":0,"uuid":"GCU-n-0","memoryMiB":"twelve"`),
		"negative size":                 record(`"minor":0,"uuid":"GCU-n-0","memoryMiB":-12`),
		"size past all bounds":          record(`"minor":0,"uuid":"GCU-n-0","memoryMiB":99999999999999999999`),
		"cut short":                     `{"version":"v1","node":"n","containers":[{"na`,
		"empty":                         "",
		"of another node":               `{"version":"v1","node":"m","containers":[{"name":"app","cards":[{"minor":0,"uuid":"GCU-m-0","memoryMiB":12288}]}]}`,
		"of another pod's container":    `{"version":"v1","node":"n","containers":[{"name":"other","cards":[{"minor":0,"uuid":"GCU-n-0","memoryMiB":12288}]}]}`,
		"whole for a share":             record(`"minor":0,"uuid":"GCU-n-0","memoryMiB":16384,"whole":true`),
		"a card under another's number": record(`"minor":0,"uuid":"GCU-n-1","memoryMiB":12288`),
		"of a newer release":            `{"version":"v2"}`,
	}
	good := func(name, version string) *v1.Pod {
		return ledgertest.Pod(name, ledgertest.Memory(2), ledgertest.Recorded("n", ledgertest.Share("app", "n", 0, 2*gib)), ledgertest.Version(version))
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := ledgertest.New(t)
			l.ObserveNode(ledgertest.Node("n", 16*gib, 16*gib))
			l.ObserveNode(ledgertest.Node("m", 16*gib))
			closed := func(want bool, when string) {
				t.Helper()
				n := l.View().Node("n")
				if (n.Closed == placement.BadRecord) != want || (len(n.Problems) > 0) != want {
					t.Errorf("%s: closed %v, problems %v", when, n.Closed, n.Problems)
				}
				if m := l.View().Node("m"); m.Closed != placement.Open {
					t.Errorf("%s: the other node is closed: %v", when, m.Closed)
				}
			}
			bad := func(name, version string) *v1.Pod {
				p := good(name, version)
				p.Annotations[ledgertest.Names.AllocationKey] = text
				return p
			}
			l.Observe(bad("p", "1"))
			closed(true, "one bad record")
			l.Observe(bad("q", "2"))
			l.Observe(good("p", "3"))
			closed(true, "one of two repaired")
			l.Gone("uid-q")
			closed(false, "one repaired, one gone")
		})
	}
}

func TestUnrecordedPodsAreChargedWorstFit(t *testing.T) {
	t.Parallel()
	l := ledgertest.New(t)
	l.ObserveNode(ledgertest.Node("n", 16*gib, 16*gib))
	l.Observe(ledgertest.Pod("z", ledgertest.Memory(4), ledgertest.Recorded("n", ledgertest.Share("app", "n", 0, 4*gib))))
	l.Observe(ledgertest.Pod("a", ledgertest.Memory(12), ledgertest.On("n"))) // before z by UID, after it by certainty
	if used(t, l, 0) != 4*gib || used(t, l, 1) != 12*gib {
		t.Errorf("cards hold %d and %d MiB", used(t, l, 0), used(t, l, 1))
	}
	if n := l.View().Node("n"); n.Closed != placement.Open {
		t.Errorf("closed %v", n.Closed)
	}
	if !l.MarkOverdue("uid-a") || l.MarkOverdue("uid-a") {
		t.Error("MarkOverdue has an effect once")
	}
	if n := l.View().Node("n"); n.Closed != placement.MissingRecord {
		t.Errorf("overdue: closed %v", n.Closed)
	}
	l.Observe(ledgertest.Pod("a", ledgertest.Memory(12), ledgertest.Recorded("n", ledgertest.Share("app", "n", 0, 12*gib)), ledgertest.Version("2")))
	if n := l.View().Node("n"); n.Closed != placement.Open || used(t, l, 0) != 16*gib || used(t, l, 1) != 0 {
		t.Errorf("recorded: closed %v, cards hold %d and %d MiB", n.Closed, used(t, l, 0), used(t, l, 1))
	}
}

func TestRecordsFromOutsideCloseAnOvercommittedNode(t *testing.T) {
	t.Parallel()
	l := ledgertest.New(t)
	l.ObserveNode(ledgertest.Node("n", 16*gib, 16*gib))
	for _, name := range []string{"a", "b"} {
		l.Observe(ledgertest.Pod(name, ledgertest.Memory(12), ledgertest.Recorded("n", ledgertest.Share("app", "n", 0, 12*gib))))
	}
	if n := l.View().Node("n"); n.Closed != placement.Overcommitted {
		t.Errorf("closed %v", n.Closed)
	}
	l.Gone("uid-b")
	if n := l.View().Node("n"); n.Closed != placement.Open {
		t.Errorf("after one is gone: closed %v", n.Closed)
	}
}

func TestSwappedCard(t *testing.T) {
	t.Parallel()
	l := ledgertest.New(t)
	l.ObserveNode(ledgertest.Node("n", 16*gib, 16*gib))
	l.Observe(ledgertest.Pod("a", ledgertest.Memory(4), ledgertest.Recorded("n", ledgertest.Share("app", "n", 0, 4*gib))))
	other := ledgertest.Card("n", 0, 16*gib)
	other.UUID = "GCU-new"
	node := ledgertest.NodeOf("n", contract.NodeDevices{MemoryUnitMiB: gib, SliceCount: 6, Devices: []contract.NodeDevice{other, ledgertest.Card("n", 1, 16*gib)}})
	node.ResourceVersion = "2"
	l.ObserveNode(node)
	n := l.View().Node("n")
	if n.Closed != placement.Open || !n.Cards[0].Swapped || n.Cards[0].Usable() || !n.Cards[1].Usable() {
		t.Errorf("closed %v, cards %+v", n.Closed, n.Cards)
	}
	l.Gone("uid-a")
	if n := l.View().Node("n"); !n.Cards[0].Usable() || n.Cards[0].UsedMiB != 0 {
		t.Errorf("after the old holder is gone: %+v", n.Cards[0])
	}
}

func TestHoldersOfAnAbsentNode(t *testing.T) {
	t.Parallel()
	l := ledgertest.New(t)
	pod := ledgertest.Pod("a", ledgertest.Memory(4), ledgertest.Recorded("n", ledgertest.Share("app", "n", 0, 4*gib)))
	l.Observe(pod)
	if n := l.View().Node("n"); n == nil || n.Closed != placement.NoGCU {
		t.Fatalf("node %+v", n)
	}
	l.ObserveNode(ledgertest.Node("n", 16*gib))
	if got := used(t, l, 0); got != 4*gib {
		t.Errorf("the node came after its pod: %d MiB", got)
	}
	l.RemoveNode("n", "2")
	if h := l.Holder(pod.UID); h == nil || h.State != ledger.Bound {
		t.Errorf("the node went before its pod: %+v", h)
	}
	if l.Gone(pod.UID); l.View().Len() != 0 {
		t.Error("the node stays after both are gone")
	}
}

func TestInitContainersHoldLessLater(t *testing.T) {
	t.Parallel()
	m := ledgertest.Names.ResourceMemory
	options := []func(*v1.Pod){
		ledgertest.Init("init", m, 14), ledgertest.Sidecar("side", m, 2), ledgertest.App("app", m, 4),
		ledgertest.Recorded("n", ledgertest.Share("init", "n", 0, 14*gib), ledgertest.Share("side", "n", 0, 2*gib), ledgertest.Share("app", "n", 0, 4*gib)),
	}
	l := ledgertest.New(t)
	l.ObserveNode(ledgertest.Node("n", 16*gib))
	l.Observe(ledgertest.Pod("a", options...))
	if got := used(t, l, 0); got != 14*gib {
		t.Errorf("before: %d MiB", got)
	}
	if got := l.Observe(ledgertest.Pod("a", append(options, ledgertest.Initialized, ledgertest.Version("2"))...)); got != ledger.Freed {
		t.Errorf("outcome %v", got)
	}
	if got := used(t, l, 0); got != 6*gib {
		t.Errorf("after: %d MiB", got)
	}
}
