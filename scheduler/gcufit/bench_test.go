package gcufit

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/internal/contract"
)

// large is a plugin whose ledger holds nodes of 8 cards with the given shares on each card; the last
// node has room for one more.
func large(tb testing.TB, nodes, shares int) (*Plugin, []nodeInfo) {
	f := newFixture(tb)
	var infos []nodeInfo
	for i := range nodes {
		name := fmt.Sprintf("node-%04d", i)
		d := contract.NodeDevices{MemoryUnitMiB: 1024, SliceCount: 6}
		for minor := range 8 {
			c := ledgertest.Card(name, minor, 42976)
			c.Bridges = []string{fmt.Sprintf("0000:%02x:00.0", minor/2), fmt.Sprintf("pci0000:%02x", minor/4)}
			d.Devices = append(d.Devices, c)
		}
		node := ledgertest.NodeOf(name, d)
		f.ledger.ObserveNode(node)
		infos = append(infos, nodeInfo{node: node})
		// One pod with a container on each card: as many shares in fewer pods, which are quicker made.
		onEach, record := []func(*v1.Pod){ledgertest.Initialized}, []contract.ContainerAllocation(nil)
		for minor := range 8 {
			c := fmt.Sprintf("c%d", minor)
			onEach = append(onEach, ledgertest.App(c, ledgertest.Names.ResourceMemory, 1))
			record = append(record, ledgertest.Share(c, name, minor, 1024))
		}
		onEach = append(onEach, ledgertest.Recorded(name, record...))
		for s := range shares {
			f.ledger.Observe(ledgertest.Pod(fmt.Sprintf("p-%04d-%02d", i, s), onEach...))
		}
	}
	f.ledger.View()
	return f.plugin, infos
}

// BenchmarkPreFilterFilter runs PreFilter and then Filter over 5,000 nodes of 8 cards with 30 shares
// each, on one goroutine. Limit: 15 ms for all, no allocation per node.
func BenchmarkPreFilterFilter(b *testing.B) {
	p, nodes := large(b, 5000, 30)
	for name, pod := range map[string]*v1.Pod{
		"share that fits":     ledgertest.Pod("q", ledgertest.Memory(8)),
		"share too large":     ledgertest.Pod("q", ledgertest.Memory(20)),
		"two cards, a switch": ledgertest.Pod("q", ledgertest.Whole(2), ledgertest.Annotate(ledgertest.Names.TopologyKey, contract.TopologySameSwitch)),
		"two containers":      ledgertest.Pod("q", ledgertest.Memory(8), ledgertest.App("b", ledgertest.Names.ResourceMemory, 4)),
	} {
		b.Run(name, func(b *testing.B) {
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				state := newState()
				if _, s := p.PreFilter(ctx, state, pod, nil); !s.IsSuccess() {
					b.Fatal(s.AsError())
				}
				for i := range nodes {
					p.Filter(ctx, state, pod, &nodes[i])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/cycle")
		})
	}
}

func TestFilterAllocatesNothing(t *testing.T) {
	p, nodes := large(t, 3, 30)
	for name, pod := range map[string]*v1.Pod{
		"fits":      ledgertest.Pod("q", ledgertest.Memory(8)),
		"fits not":  ledgertest.Pod("q", ledgertest.Memory(20)),
		"two cards": ledgertest.Pod("q", ledgertest.Whole(2)),
	} {
		state := newState()
		if _, s := p.PreFilter(t.Context(), state, pod, nil); !s.IsSuccess() {
			t.Fatal(s.AsError())
		}
		ctx := t.Context()
		if got := testing.AllocsPerRun(100, func() {
			for i := range nodes {
				p.Filter(ctx, state, pod, &nodes[i])
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations, want none", name, got)
		}
	}
}
