package plugin

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
)

// BenchmarkTicket writes a ticket's file beside 110 others, synced to disk as it has to be, and waits until a CDI
// cache that is fed as an engine's is resolves it.
func BenchmarkTicket(b *testing.B) {
	t, err := newTickets(b.TempDir(), "/", contract.Default())
	if err != nil {
		b.Fatal(err)
	}
	defer t.close()
	devices := map[int]eflib.Device{0: {Minor: 0, Major: 240, Node: "/dev/gcu0"}}
	cards := []contract.CardAllocation{{Minor: 0, UUID: "GCU-a", MemoryMiB: 1024}}
	for range 110 {
		if err := t.write(newTicket(), cards, devices); err != nil {
			b.Fatal(err)
		}
	}
	var took []time.Duration
	for b.Loop() {
		start := time.Now()
		name := newTicket()
		if err := t.write(name, cards, devices); err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
		err := t.resolve(ctx, []string{name})
		cancel()
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
		if err := t.remove([]string{name}); err != nil {
			b.Fatal(err)
		}
	}
	report(b, took)
}

// BenchmarkBook enters a pod into a book of 110, synced to disk.
func BenchmarkBook(b *testing.B) {
	book, _, err := openBook(b.TempDir()+"/book.json", time.Now())
	if err != nil {
		b.Fatal(err)
	}
	pod := func(i int) contract.BookPod {
		return contract.BookPod{UID: fmt.Sprintf("uid-%03d", i), Namespace: "ns", Name: "p", Charges: []contract.BookCharge{{UUID: "GCU-a", MemoryMiB: 256}}}
	}
	err = book.update(func(b *contract.Book) (bool, error) {
		for i := range 110 {
			b.Pods = append(b.Pods, pod(i))
			b.Tickets = append(b.Tickets, contract.BookTicket{Name: newTicket(), Resource: "enflame.com/gcu-memory", IDs: []string{fmt.Sprint(i)},
				PodUID: fmt.Sprintf("uid-%03d", i), Container: "c", Cards: []contract.CardAllocation{{UUID: "GCU-a", MemoryMiB: 256}}})
		}
		return true, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for i := 110; b.Loop(); i++ {
		start := time.Now()
		err := book.update(func(b *contract.Book) (bool, error) {
			_, err := charge(b, pod(i), map[int]int64{0: 1 << 30})
			b.Pods = slices.Delete(b.Pods, 0, 1)
			b.Tickets = nil
			return true, err
		})
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	report(b, took)
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
