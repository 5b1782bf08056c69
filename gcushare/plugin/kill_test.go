package plugin_test

import (
	"errors"
	"testing"
	"time"
)

// TestKilledAtEveryStep ends the agent between any two things that outlive it. A new one then goes on: whatever
// runs sees its record's card, nobody gets a card twice, and nothing is left of what is gone.
func TestKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	steps := []string{
		"Allocate: before the book", "Allocate: after the book",
		"PreStart: before the book", "PreStart: before a ticket's file", "PreStart: after the files",
		"PreStart: before the pod is marked", "PreStart: before the answer",
		"Collect: between book and files",
	}
	for _, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, 2)
			neighbour := n.bind(newPod("neighbour", ask{"c", memory, 4}), "c:0=4096")
			n.admit(neighbour)
			n.wantStart(neighbour, "c", "0 4096")

			p := n.bind(newPod("p", ask{"c", memory, 4}), "c:1=4096")
			n.mu.Lock()
			n.killAt = step
			n.mu.Unlock()
			admitErr := n.kubelet.Admit(p)
			if admitErr == nil {
				_, startErr := n.kubelet.Start(p.UID, "c")
				if startErr != nil {
					n.restartAgent()
				}
				n.wantStart(p, "c", "1 4096")
			} else { // the call itself died: kubelet fails the pod, and its owner makes it anew
				n.api.remove(p.UID)
				n.restartAgent()
				q := n.bind(newPod("q", ask{"c", memory, 4}), "c:1=4096")
				n.admit(q)
				n.wantStart(q, "c", "1 4096")
				p = q
			}
			n.wantStart(neighbour, "c", "0 4096") // it restarts
			n.checkBook(t)

			n.api.remove(neighbour.UID)
			n.kubelet.Remove(neighbour.UID)
			func() {
				defer func() {
					if r := recover(); r != nil && !errors.Is(r.(error), errKilled) {
						panic(r)
					}
				}()
				_ = n.arbiter.Collect(t.Context())
			}()
			n.mu.Lock()
			killed := n.killAt == ""
			n.mu.Unlock()
			if !killed {
				t.Fatal("no call came to this step")
			}
			n.restartAgent()
			if err := n.arbiter.Collect(t.Context()); err != nil {
				t.Fatal(err)
			}
			n.wantStart(p, "c", "1 4096")
			b := n.arbiter.Book()
			if len(b.Pods) != 1 || b.Pods[0].UID != string(p.UID) {
				t.Errorf("pods in the book: %+v", b.Pods)
			}
			if files := n.cdiFiles(); len(files) != 1 {
				t.Errorf("files %v: want that of the running pod", files)
			}
			for _, ticket := range b.Tickets {
				if ticket.PodUID == "" && time.Since(ticket.Issued) > time.Minute {
					t.Errorf("ticket %s belongs to nobody", ticket.Name)
				}
			}
		})
	}
}

// checkBook adds up what the book's pods hold on each card.
func (n *node) checkBook(t *testing.T) {
	t.Helper()
	used := map[int]int64{}
	for _, p := range n.arbiter.Book().Pods {
		for _, c := range p.Charges {
			if used[c.Minor] += c.MemoryMiB; used[c.Minor] > cardMiB {
				t.Errorf("card %d: %d of %d MiB", c.Minor, used[c.Minor], cardMiB)
			}
		}
	}
}
