package simnode

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// freeAddresses returns addresses that were free a moment ago. They are held together, so that none is there twice.
func freeAddresses(t *testing.T, n int) []string {
	t.Helper()
	var listeners []net.Listener
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
	}
	var out []string
	for _, l := range listeners {
		out = append(out, l.Addr().String())
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func scrape(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v\n%s", answer.Status, err, text)
	}
	return string(text)
}

// used returns the memory in use and the number of goroutines.
func used() (bytes uint64, goroutines int) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse, runtime.NumGoroutine()
}

// A machine simulates hundreds of nodes, so an exporter has to cost little and to know of its own node only.
func TestManyExportersInOneProcess(t *testing.T) {
	const nodes = 200
	dir := t.TempDir()
	addresses := freeAddresses(t, nodes)
	memoryBefore, goroutinesBefore := used()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var exporters []*exporter
	for i, address := range addresses {
		e := newExporter(address, fmt.Sprintf("--node-name=n-%d", i), "--host-root="+dir, "--device-source=sim", "--machine=s60x8",
			"--book-socket="+filepath.Join(dir, "book.sock"), "--pod-resources-socket="+filepath.Join(dir, "kubelet.sock"))
		exporters = append(exporters, e)
		wg.Go(func() {
			if err := e.run(ctx); err != nil {
				t.Errorf("exporter %d: %v", i, err)
			}
		})
	}
	for _, e := range exporters {
		if err := e.wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	uuids := map[string]int{}
	for i, address := range addresses {
		host := fmt.Sprintf(`host="n-%d"`, i)
		var own []string
		for line := range strings.SplitSeq(scrape(t, address), "\n") {
			if strings.Contains(line, "host=") && !strings.Contains(line, host+",") && !strings.Contains(line, host+"}") {
				t.Fatalf("exporter %d tells of another node: %s", i, line)
			}
			if strings.HasPrefix(line, "enflame_gcu_info{") {
				_, after, _ := strings.Cut(line, `uuid="`)
				uuid, _, _ := strings.Cut(after, `"`)
				own = append(own, uuid)
			}
		}
		slices.Sort(own)
		if own = slices.Compact(own); len(own) != 8 {
			t.Errorf("exporter %d tells of cards %v: want 8", i, own)
		}
		for _, uuid := range own {
			uuids[uuid]++
		}
	}
	if len(uuids) != 8*nodes {
		t.Errorf("%d different cards: want %d", len(uuids), 8*nodes)
	}
	memory, goroutines := used()
	each, routines := int64(memory-memoryBefore)/nodes, (goroutines-goroutinesBefore)/nodes
	t.Logf("an exporter costs %d KiB and %d goroutines", each>>10, routines)
	// Seen: 390 KiB and 19 goroutines, of which 8 are one for each card.
	if each > 1<<20 || routines > 40 {
		t.Errorf("an exporter costs %d KiB and %d goroutines: want at most 1024 and 40", each>>10, routines)
	}
}

// A port that somebody has taken is an error that says so, since the sandbox then tries others.
func TestExporterOnATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	e := newExporter(taken.Addr().String(), "--node-name=n", "--host-root="+dir, "--device-source=sim", "--machine=t10x8", "--pods=false")
	done := make(chan error, 1)
	go func() { done <- e.run(t.Context()) }()
	if err := e.wait(t.Context()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v, want that the address is in use", err)
	}
	if err := <-done; err == nil {
		t.Error("it ended without an error")
	}
}
