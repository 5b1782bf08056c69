package nodetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
)

// Until waits for something that comes about by itself.
func (n *Node) Until(what string, check func(context.Context) error) {
	n.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(n.t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		n.t.Fatalf("waiting until %s: %v", what, last)
	}
}

// Allocatable waits until kubelet offers amounts of memory units, slices and whole cards.
func (n *Node) Allocatable(units, slices, cards int) {
	n.t.Helper()
	n.Until("the allocatable amounts are right", func(context.Context) error {
		got := [3]int{n.Kubelet.Allocatable(Memory), n.Kubelet.Allocatable(Slice), n.Kubelet.Allocatable(Whole)}
		if want := [3]int{units, slices, cards}; got != want {
			return fmt.Errorf("memory, slices, cards %v, want %v", got, want)
		}
		return nil
	})
}

// Told waits until the agent tells the node's other programs these holdings, each "card/pod/container/MiB".
func (n *Node) Told(want ...string) {
	n.t.Helper()
	n.Until("the holdings are told", func(ctx context.Context) error {
		book, err := nodebook.NewClient(n.BookSocket()).Get(ctx)
		if err != nil {
			return err
		}
		var got []string
		for _, h := range book.Holdings {
			got = append(got, fmt.Sprintf("%d/%s/%s/%d", h.Minor, h.Pod, h.Container, h.MemoryMiB))
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		return nil
	})
}

// Faults makes the machine have faults, and no others.
func (n *Node) Faults(lines ...string) {
	n.t.Helper()
	parsed, err := sim.ParseFaults(strings.Join(lines, "\n"))
	if err == nil {
		err = sim.WriteFaults(n.ControlFile(), parsed...)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// Check holds the node's book to what it may never say.
func (n *Node) Check() {
	n.t.Helper()
	m, err := sim.Preset(n.machine)
	if err != nil {
		n.t.Fatal(err)
	}
	used, holders, exclusive := map[int]int64{}, map[int]int{}, map[int]bool{}
	for _, p := range n.Agent.Book().Pods {
		for _, c := range p.Charges {
			used[c.Minor] += c.MemoryMiB
			holders[c.Minor]++
			exclusive[c.Minor] = exclusive[c.Minor] || c.Whole
		}
	}
	for _, c := range m.Cards {
		if used[c.Minor] > c.MemoryMiB || exclusive[c.Minor] && holders[c.Minor] > 1 {
			n.t.Errorf("card %d: %d holders of %d of %d MiB, whole %t", c.Minor, holders[c.Minor], used[c.Minor], c.MemoryMiB, exclusive[c.Minor])
		}
	}
}
