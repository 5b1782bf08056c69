package ledger_test

import (
	"fmt"
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
)

// BenchmarkRebuild takes 5,000 nodes of 8 cards and 100,000 running pods into an empty ledger and takes
// the first view, as a scheduler does at its start. Limits: 5 s and 400 MB.
func BenchmarkRebuild(b *testing.B) {
	const nodes, perNode = 5000, 20
	var nodeList []*v1.Node
	var podList []*v1.Pod
	for i := range nodes {
		name := fmt.Sprintf("node-%04d", i)
		nodeList = append(nodeList, ledgertest.Node(name, 42976, 42976, 42976, 42976, 42976, 42976, 42976, 42976))
		for j := range perNode {
			podList = append(podList, ledgertest.Pod(fmt.Sprintf("pod-%04d-%02d", i, j), ledgertest.Memory(8),
				ledgertest.Recorded(name, ledgertest.Share("app", name, j%8, 8192)), ledgertest.Initialized))
		}
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	b.ResetTimer()
	var l *ledger.Ledger
	for b.Loop() {
		l = ledger.New(ledgertest.Names)
		for _, n := range nodeList {
			l.ObserveNode(n)
		}
		for _, p := range podList {
			l.Observe(p)
		}
		if got := l.View().Len(); got != nodes {
			b.Fatalf("%d nodes in the view", got)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(heap()-before)/(1<<20), "MiB-heap")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/rebuild")
	runtime.KeepAlive(l)
	runtime.KeepAlive(podList)
	runtime.KeepAlive(nodeList)
}

// BenchmarkView takes a view after one of 5,000 nodes changed, as every scheduling cycle does.
func BenchmarkView(b *testing.B) {
	l := ledger.New(ledgertest.Names)
	for i := range 5000 {
		l.ObserveNode(ledgertest.Node(fmt.Sprintf("node-%04d", i), 42976, 42976, 42976, 42976, 42976, 42976, 42976, 42976))
	}
	pod := ledgertest.Pod("p", ledgertest.Memory(8), ledgertest.Recorded("node-0000", ledgertest.Share("app", "node-0000", 0, 8192)))
	b.ReportAllocs()
	for b.Loop() {
		l.Observe(pod)
		l.View()
		l.Gone(pod.UID)
		l.View()
	}
}
