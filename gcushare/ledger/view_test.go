package ledger

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/topscloud/topscloud/internal/contract"
)

func smallNode(t testing.TB, name, version string) *v1.Node {
	names := contract.Default()
	text, err := contract.EncodeDevices(contract.NodeDevices{MemoryUnitMiB: 1024, SliceCount: 6, Devices: []contract.NodeDevice{{UUID: "GCU-" + name, MemoryMiB: 16384, NUMA: -1}}})
	if err != nil {
		t.Fatal(err)
	}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, ResourceVersion: version, Annotations: map[string]string{names.DevicesKey: text}, Labels: map[string]string{names.SharingLabel: "true"},
	}}
}

// A view must stay as it was taken, and two views must share what did not change between them.
func TestViewsAreImmutableAndShareChunks(t *testing.T) {
	t.Parallel()
	const nodes = 3*chunkSize + 5
	l := New(contract.Default())
	t.Cleanup(func() {
		if err := l.Check(); err != nil {
			t.Error(err)
		}
	})
	for i := range nodes {
		l.ObserveNode(smallNode(t, fmt.Sprintf("n%03d", i), "1"))
	}
	first := l.View()
	if again := l.View(); again != first {
		t.Error("a view of an unchanged ledger is another one")
	}
	changed := smallNode(t, "n100", "2")
	delete(changed.Labels, contract.Default().SharingLabel)
	l.ObserveNode(changed)
	l.RemoveNode("n001", "2")
	second := l.View()
	if !first.Node("n100").Sharing || first.Node("n001") == nil || first.Len() != nodes {
		t.Error("the first view changed")
	}
	if second.Node("n100").Sharing || second.Node("n001") != nil || second.Len() != nodes-1 {
		t.Error("the second view did not change")
	}
	if second.Generation <= first.Generation {
		t.Errorf("generations %d and %d", first.Generation, second.Generation)
	}
	at := map[int]bool{first.index["n100"] / chunkSize: true, first.index["n001"] / chunkSize: true}
	for k := range first.chunks {
		if same := first.chunks[k] == second.chunks[k]; same == at[k] {
			t.Errorf("chunk %d: shared %t, changed %t", k, same, at[k])
		}
	}
	// The free place is used again, and not by the views before.
	l.ObserveNode(smallNode(t, "new", "3"))
	third := l.View()
	if third.Node("new") == nil || second.Node("new") != nil || third.Len() != nodes {
		t.Error("a node made later is seen in the wrong views")
	}
	count := 0
	for n := range third.Nodes() {
		if n == nil {
			t.Fatal("a nil node")
		}
		count++
	}
	if count != nodes {
		t.Errorf("%d nodes yielded", count)
	}
}
