package nodebook_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
)

var update = flag.Bool("update", false, "write the golden files")

func golden() nodebook.Book {
	return nodebook.Book{
		Version: nodebook.Version, Node: "gcu-node-1", MemoryUnitMiB: 1024, SliceCount: 6, MemoryEnforced: true,
		Holdings: []nodebook.Holding{
			{
				Minor: 0, UUID: "GCU-U53000080105", PCIBusID: "0000:11:00.0", PodUID: "2a9e1f40-52f4-4a19-8a0d-36a1b0d9a3c1",
				Namespace: "research", Pod: "pretrain-0", Container: "trainer", Resource: "enflame.com/gcu", Kind: nodebook.Whole, MemoryMiB: 42976,
			},
			{
				Minor: 4, UUID: "GCU-U53000080109", PodUID: "5c7d5d2b-6a1e-4d55-9a5b-6f1ce3e0b7f2",
				Namespace: "serving", Pod: "chat", Container: "server", Resource: "enflame.com/gcu-memory", Kind: nodebook.Memory, MemoryMiB: 20480,
			},
		},
	}
}

// The book is read by programs of other releases: what is written today, and what agents wrote before a holding said
// where its card is.
func TestGolden(t *testing.T) {
	t.Parallel()
	path := filepath.Join("testdata", "v1.json")
	text := encode(t, golden())
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(kept), string(text)); diff != "" {
		t.Errorf("(-golden +written):\n%s", diff)
	}
	want := golden()
	read(t, kept, want)

	// Never written anew: no release writes it any more.
	older, err := os.ReadFile(filepath.Join("testdata", "v1-without-places.json"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Holdings {
		want.Holdings[i].PCIBusID = ""
	}
	read(t, older, want)
}

func read(t *testing.T, text []byte, want nodebook.Book) {
	t.Helper()
	got, err := nodebook.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("(-want +read):\n%s", diff)
	}
}

// encode returns the text that a publisher sends.
func encode(t *testing.T, b nodebook.Book) []byte {
	t.Helper()
	p := &nodebook.Publisher{}
	if _, err := p.Set(b); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/book", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.Bytes()
}
