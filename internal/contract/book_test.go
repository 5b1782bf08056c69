package contract_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/internal/contract"
)

func book() contract.Book {
	return contract.Book{Version: contract.BookVersion, Pods: []contract.BookPod{
		{UID: "uid-1", Namespace: "ns", Name: "p", Charges: []contract.BookCharge{{Minor: 0, UUID: "GCU-a", MemoryMiB: 8192}}},
	}, Tickets: []contract.BookTicket{
		{Name: "t-a", Resource: "enflame.com/gcu-memory", IDs: []string{"u0001", "u0002"}, Issued: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)},
		{Name: "t-b", Resource: "enflame.com/gcu-memory", IDs: []string{"u0003"}, Issued: time.Date(2026, 3, 1, 12, 0, 1, 0, time.UTC),
			PodUID: "uid-1", Container: "c", Cards: []contract.CardAllocation{{Minor: 0, UUID: "GCU-a", MemoryMiB: 8192}}},
	}}
}

func TestBookGolden(t *testing.T) {
	path := filepath.Join("testdata", "book-v1.json")
	text := must[[]byte](t)(contract.EncodeBook(book()))
	if *update {
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept := must[[]byte](t)(os.ReadFile(path))
	if diff := cmp.Diff(string(kept), string(text)+"\n"); diff != "" {
		t.Errorf("(-golden +written):\n%s", diff)
	}
	got := must[*contract.Book](t)(contract.DecodeBook(kept))
	got.Checksum = ""
	want := book()
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecodeBookRefuses(t *testing.T) {
	t.Parallel()
	text := string(must[[]byte](t)(contract.EncodeBook(book())))
	tests := map[string]string{
		"empty":             "",
		"cut short":         text[:len(text)-9],
		"a changed size":    strings.Replace(text, "8192", "9192", 1),
		"a newer version":   strings.Replace(text, `"v1"`, `"v2"`, 1),
		"an unknown field":  strings.Replace(text, `"pods"`, `"colour":"red","pods"`, 1),
		"a checksum of old": strings.Replace(text, `"checksum":"`, `"checksum":"0`, 1),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := contract.DecodeBook([]byte(text)); err == nil {
				t.Error("it was read")
			}
		})
	}
	b := book()
	b.Tickets[1].PodUID = "nobody"
	if _, err := contract.EncodeBook(b); err == nil {
		t.Error("a ticket of a pod that is not in the book was written")
	}
}

func FuzzDecodeBook(f *testing.F) {
	f.Add(must[[]byte](f)(contract.EncodeBook(book())))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := contract.DecodeBook(text)
		if err != nil {
			return
		}
		if _, err := contract.EncodeBook(*b); err != nil {
			t.Fatalf("read but not written: %v", err)
		}
	})
}
