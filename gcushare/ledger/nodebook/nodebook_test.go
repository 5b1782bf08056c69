package nodebook_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
)

func book(pods ...string) nodebook.Book {
	b := nodebook.Book{Version: nodebook.Version, Node: "n1", MemoryUnitMiB: 1024, SliceCount: 6}
	for i, p := range pods {
		b.Holdings = append(b.Holdings, nodebook.Holding{
			Minor: i, UUID: "GCU-1", PodUID: p, Namespace: "ns", Pod: p, Container: "main",
			Resource: "enflame.com/gcu-memory", Kind: nodebook.Memory, MemoryMiB: 8192,
		})
	}
	return b
}

// serve runs a publisher's socket and returns how to end it.
func serve(t *testing.T, path, instance string, p *nodebook.Publisher) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- nodebook.Serve(ctx, path, instance, p) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return end
}

// watch sends each book, and at last the reason why the watch ended.
func watch(t *testing.T, path string) (<-chan *nodebook.Book, <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	books, ended := make(chan *nodebook.Book), make(chan error, 1)
	go func() {
		ended <- nodebook.NewClient(path).Watch(ctx, func(b *nodebook.Book) {
			select {
			case books <- b:
			case <-ctx.Done():
			}
		})
	}()
	t.Cleanup(cancel)
	return books, ended
}

// reach asks until the socket of some agent answers with a book of these pods.
func reach(t *testing.T, path, pod string) *nodebook.Book {
	t.Helper()
	c := nodebook.NewClient(path)
	for t.Context().Err() == nil {
		if b, err := c.Get(t.Context()); err == nil && len(b.Holdings) == 1 && b.Holdings[0].Pod == pod {
			return b
		}
	}
	t.Fatal("the agent was not reached")
	return nil
}

func TestWatchTellsEachChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book.sock")
	p := &nodebook.Publisher{}
	if _, err := p.Set(book("a")); err != nil {
		t.Fatal(err)
	}
	end := serve(t, path, "1", p)
	if diff := cmp.Diff(book("a"), *reach(t, path, "a")); diff != "" {
		t.Errorf("book (-want +got):\n%s", diff)
	}
	books, ended := watch(t, path)
	if b := <-books; len(b.Holdings) != 1 {
		t.Errorf("at once: %v", b)
	}
	if changed, err := p.Set(book("a")); changed || err != nil {
		t.Errorf("the same book again: changed %v, error %v", changed, err)
	}
	if changed, err := p.Set(book("a", "b")); !changed || err != nil {
		t.Errorf("another book: changed %v, error %v", changed, err)
	}
	if b := <-books; len(b.Holdings) != 2 {
		t.Errorf("after a change: %v", b)
	}
	end()
	if err := <-ended; err == nil {
		t.Error("a watch ended without saying why")
	}
	if b, err := nodebook.NewClient(path).Get(t.Context()); err == nil {
		t.Errorf("after the agent's end: %v", b)
	}
}

// Before the agent has looked there is no book, rather than an empty one that would say that nobody holds
// anything.
func TestNoBookYet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book.sock")
	p := &nodebook.Publisher{}
	serve(t, path, "1", p)
	c := nodebook.NewClient(path)
	for {
		_, err := c.Get(t.Context())
		if err == nil {
			t.Fatal("a book before the first")
		}
		if strings.Contains(err.Error(), "503") {
			break
		}
	}
	books, _ := watch(t, path)
	if _, err := p.Set(book("a")); err != nil {
		t.Fatal(err)
	}
	if b := <-books; len(b.Holdings) != 1 {
		t.Errorf("the first book: %v", b)
	}
}

// The newer agent of a rolling update takes the socket over, and the older one, when it ends, leaves it alone.
func TestRollingUpdateOfTheAgent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book.sock")
	older, newer := &nodebook.Publisher{}, &nodebook.Publisher{}
	for p, pod := range map[*nodebook.Publisher]string{older: "older", newer: "newer"} {
		if _, err := p.Set(book(pod)); err != nil {
			t.Fatal(err)
		}
	}
	endOlder := serve(t, path, "older", older)
	reach(t, path, "older")
	books, ended := watch(t, path)
	<-books
	serve(t, path, "newer", newer)
	reach(t, path, "newer")
	endOlder()
	if err := <-ended; err == nil {
		t.Error("the watch of the older agent ended without saying why")
	}
	reach(t, path, "newer")
}

func TestDecodeRefuses(t *testing.T) {
	good := book("a")
	for name, change := range map[string]func(*nodebook.Book){
		"another version":       func(b *nodebook.Book) { b.Version = "v2" },
		"a minor out of range":  func(b *nodebook.Book) { b.Holdings[0].Minor = 128 },
		"a holding of no pod":   func(b *nodebook.Book) { b.Holdings[0].PodUID = "" },
		"a place that is none":  func(b *nodebook.Book) { b.Holdings[0].PCIBusID = "00:23:00.0" },
		"an unknown kind":       func(b *nodebook.Book) { b.Holdings[0].Kind = "drs" },
		"less than no memory":   func(b *nodebook.Book) { b.Holdings[0].MemoryMiB = -1 },
		"a nameless container":  func(b *nodebook.Book) { b.Holdings[0].Container = "" },
		"a minor less than all": func(b *nodebook.Book) { b.Holdings[0].Minor = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			b := good
			b.Holdings = append([]nodebook.Holding(nil), good.Holdings...)
			change(&b)
			text, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := nodebook.Decode(text); err == nil {
				t.Errorf("got %v, want an error", got)
			}
		})
	}
	if _, err := nodebook.Decode([]byte(`{"version":"v1","some":"new field"}`)); err != nil {
		t.Errorf("a field that a later release added: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	text, err := json.Marshal(book("a", "b"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := nodebook.Decode(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nodebook.Decode(again); err != nil {
			t.Errorf("what was read cannot be read again: %v", err)
		}
	})
}
