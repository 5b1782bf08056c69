package telemetry_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/scheduler/telemetry"
)

func TestCollect(t *testing.T) {
	t.Parallel()
	l := ledgertest.New(t)
	l.ObserveNode(ledgertest.Node("a", 1024, 1024, 1024))
	l.ObserveNode(ledgertest.Node("b", 1024))
	l.Observe(ledgertest.Pod("w", ledgertest.Whole(1), ledgertest.Recorded("a", ledgertest.Exclusive("app", "a", 0, 1024))))
	l.Observe(ledgertest.Pod("s", ledgertest.Slices(1), ledgertest.Recorded("a", ledgertest.Share("app", "a", 1, 170))))
	bad := ledgertest.Pod("x", ledgertest.Whole(1), ledgertest.On("b"))
	bad.Annotations[ledgertest.Names.AllocationKey] = "{"
	l.Observe(bad)
	c := telemetry.New(func() *ledger.Ledger { return l })
	const want = `
# HELP gcu_scheduler_cards Cards of the node by what they are: free, shared, whole (one pod has all of it) or unusable (sick, cordoned or exchanged).
# TYPE gcu_scheduler_cards gauge
gcu_scheduler_cards{node="a",state="free"} 1
gcu_scheduler_cards{node="a",state="shared"} 1
gcu_scheduler_cards{node="a",state="unusable"} 0
gcu_scheduler_cards{node="a",state="whole"} 1
gcu_scheduler_cards{node="b",state="free"} 1
gcu_scheduler_cards{node="b",state="shared"} 0
gcu_scheduler_cards{node="b",state="unusable"} 0
gcu_scheduler_cards{node="b",state="whole"} 0
# HELP gcu_scheduler_held_bytes Memory of the node's cards that is promised to pods.
# TYPE gcu_scheduler_held_bytes gauge
gcu_scheduler_held_bytes{node="a"} 1.251999744e+09
gcu_scheduler_held_bytes{node="b"} 0
# HELP gcu_scheduler_memory_bytes Memory of the node's cards that may be given out.
# TYPE gcu_scheduler_memory_bytes gauge
gcu_scheduler_memory_bytes{node="a"} 3.221225472e+09
gcu_scheduler_memory_bytes{node="b"} 1.073741824e+09
# HELP gcu_scheduler_node_closed 1 if the node takes no new pods that ask for cards, by reason; no series while it does.
# TYPE gcu_scheduler_node_closed gauge
gcu_scheduler_node_closed{node="b",reason="bad_record"} 1
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	problems, err := testutil.CollectAndLint(c)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	if n := testutil.CollectAndCount(telemetry.New(func() *ledger.Ledger { return nil })); n != 0 {
		t.Errorf("%d series without a ledger", n)
	}
}
