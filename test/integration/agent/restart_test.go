package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/deviceplugin/agent"
	"github.com/topscloud/topscloud/internal/contract"
)

// A restarted agent says at once what the one before said, and containers go on.
func TestAgentRestarts(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	p := n.Pod("p", container{Name: "c", Resource: memory, Amount: 8, Cards: []contract.CardAllocation{n.Card(1, 8*gib)}})
	n.Run(p)
	n.Allocatable(128, 60, 3)
	// Between Allocate and PreStart.
	q := n.Pod("q", container{Name: "c", Resource: memory, Amount: 8, Cards: []contract.CardAllocation{n.Card(2, 8*gib)}})
	if err := n.Kubelet.Admit(q); err != nil {
		t.Fatal(err)
	}
	n.Restart()
	n.Allocatable(128, 56, 2)
	for pod, want := range map[*v1.Pod]string{p: "1", q: "2"} {
		if got, _ := n.Sees(pod, "c"); got != want {
			t.Errorf("pod %s sees %s", pod.Name, got)
		}
	}
	// The machine restarts: CDI files are gone, book and checkpoint are not.
	n.Stop()
	if err := os.RemoveAll(n.CDIDir()); err != nil {
		t.Fatal(err)
	}
	n.Start()
	if got, _ := n.Sees(p, "c"); got != "1" {
		t.Errorf("after the reboot the pod sees %s", got)
	}
	// kubelet restarts, and its folder is wiped.
	if err := n.Kubelet.Restart(); err != nil {
		t.Fatal(err)
	}
	n.Until("the agent is ready again", func(context.Context) error { return n.Agent.Ready() })
	n.Allocatable(128, 56, 2)
	n.Check()
}

// A rolling update: the new agent registers before the old one stops, and kubelet may ask either.
func TestTwoAgentsOverlap(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	for i := range 5 {
		p := n.Pod(fmt.Sprintf("p%d", i), container{Name: "c", Resource: memory, Amount: 4, Cards: []contract.CardAllocation{n.Card(i%4, 4*gib)}})
		if err := n.Kubelet.Admit(p); err != nil {
			t.Fatal(err)
		}
		next, stop := n.Spawn(fmt.Sprintf("next-%d", i))
		n.Until("the new agent is ready", func(context.Context) error { return next.Ready() })
		if n.Kubelet.Allocatable(memory) != 128 {
			t.Errorf("allocatable fell to %d while the agents overlapped", n.Kubelet.Allocatable(memory))
		}
		n.run2(p)
		before := n.Stop
		before()
		n.Agent, n.Stop = next, sync.OnceFunc(stop)
		if got, _ := n.Sees(p, "c"); got != fmt.Sprint(i%4) {
			t.Errorf("pod %d sees %s", i, got)
		}
	}
	n.Allocatable(128, 64-10, 0)
	n.Check()
}

// run2 starts the containers of a pod that was admitted.
func (n *node) run2(pod *v1.Pod) {
	n.t.Helper()
	for _, c := range pod.Spec.Containers {
		n.StartContainer(pod, c.Name)
	}
}

// While the API server is away running pods restart their containers, and new ones wait and are not failed.
func TestAPIServerAway(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	p := n.Pod("p", container{Name: "c", Resource: memory, Amount: 8, Cards: []contract.CardAllocation{n.Card(1, 8*gib)}})
	n.Run(p)
	n.Allocatable(128, 60, 3)
	n.down.Store(true)
	if got, _ := n.Sees(p, "c"); got != "1" {
		t.Errorf("sees %s", got)
	}
	// A pod that the agent's watch may or may not have brought: whatever it does, it is not wrong.
	ghost := n.Pod("q", container{Name: "c", Resource: memory, Amount: 8, Cards: []contract.CardAllocation{n.Card(2, 8*gib)}})
	if err := n.Kubelet.Admit(ghost); err != nil {
		t.Fatal(err)
	}
	n.down.Store(false)
	if got, _ := n.Sees(ghost, "c"); got != "2" {
		t.Errorf("sees %s", got)
	}
	n.Check()
}

func TestUnreadableBookIsRebuilt(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	p := n.Pod("p", container{Name: "c", Resource: memory, Amount: 8, Cards: []contract.CardAllocation{n.Card(1, 8*gib)}})
	n.Run(p)
	n.Stop()
	if err := os.WriteFile(filepath.Join(n.Root, "state/book.json"), []byte(`{"version":"v1","pods":`), 0o600); err != nil {
		t.Fatal(err)
	}
	n.Start()
	n.Allocatable(128, 60, 3)
	if pods := n.Agent.Book().Pods; len(pods) != 1 || pods[0].UID != string(p.UID) {
		t.Errorf("the book has %+v", pods)
	}
	n.event("", "set aside")
	if got, _ := n.Sees(p, "c"); got != "1" {
		t.Errorf("sees %s", got)
	}
}

// Twenty pods of two cards are made and deleted at once on a machine of eight. Two never have one card, and
// what a container sees is what its pod's record says. The vendor's plugin could do neither.
func TestTwentyPodsOfTwoCards(t *testing.T) {
	t.Parallel()
	n := newNodeOf(t, "s60x8", nil)
	n.Until("all cards are offered", func(context.Context) error {
		if got := n.Kubelet.Allocatable(whole); got != 8 {
			return fmt.Errorf("%d", got)
		}
		return nil
	})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	holder := map[string]string{} // card to pod
	// As many at once as there is room for; the scheduler keeps the others waiting.
	room := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for i := range 20 {
		room <- struct{}{}
		name, hold := fmt.Sprintf("p%d", i), time.Duration(random.IntN(50))*time.Millisecond
		wg.Go(func() {
			defer func() { <-room }() // a failed attempt must not keep the others waiting
			p := n.Pod(name, container{Name: "c", Resource: whole, Amount: 2})
			if err := n.Kubelet.Admit(p); err != nil {
				t.Errorf("%s: %v", name, err)
				n.Forget(p) // kubelet would set it to Failed
				return
			}
			cards, _ := n.Sees(p, "c")
			record, err := contract.DecodeAllocation(n.Get(p).Annotations[names.AllocationKey])
			if err != nil {
				t.Error(err)
				return
			}
			var told []string
			for _, c := range record.Containers[0].Cards {
				told = append(told, fmt.Sprint(c.Minor))
			}
			if strings.Join(told, ",") != cards {
				t.Errorf("%s: the record says %v, the container sees %s", name, told, cards)
			}
			mu.Lock()
			for _, c := range told {
				if other := holder[c]; other != "" {
					t.Errorf("card %s is %s's and %s's", c, other, name)
				}
				holder[c] = name
			}
			mu.Unlock()
			time.Sleep(hold) // the job
			mu.Lock()
			for _, c := range told {
				delete(holder, c)
			}
			mu.Unlock()
			n.Remove(p)
		})
	}
	wg.Wait()
	n.Until("all cards are offered again", func(context.Context) error {
		if got, books := n.Kubelet.Allocatable(whole), len(n.Agent.Book().Pods); got != 8 || books != 0 {
			return fmt.Errorf("%d cards, %d pods in the book", got, books)
		}
		return nil
	})
	n.Check()
}

// Nothing is left behind by restarts: goroutines, sockets, CDI files.
func TestRestartsLeakNothing(t *testing.T) {
	rounds := 10
	if os.Getenv("TOPSCLOUD_TEST_FULL") != "" {
		rounds = 50
	}
	n := newNode(t, func(o *agent.Options) { o.HealthInterval = time.Second })
	p := n.Pod("p", container{Name: "c", Resource: memory, Amount: 8, Cards: []contract.CardAllocation{n.Card(1, 8*gib)}})
	n.Run(p)
	n.Restart()
	count := func() (sockets, files int) {
		list, err := filepath.Glob(filepath.Join(n.Kubelet.PluginDir(), "enflame*.sock"))
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(n.CDIDir())
		if err != nil {
			t.Fatal(err)
		}
		return len(list), len(entries)
	}
	before := runtime.NumGoroutine()
	for range rounds {
		n.Restart()
	}
	n.Until("goroutines have ended", func(context.Context) error {
		if now := runtime.NumGoroutine(); now > before+5 {
			return fmt.Errorf("%d goroutines, %d before", now, before)
		}
		return nil
	})
	if sockets, files := count(); sockets != 3 || files != 1 {
		t.Errorf("%d sockets and %d CDI files: want 3 and 1", sockets, files)
	}
	n.Stop()
	if sockets, files := count(); sockets != 0 || files != 1 {
		t.Errorf("stopped: %d sockets and %d CDI files: want none and 1", sockets, files)
	}
	n.Start()
	if err := n.Agent.Ready(); err != nil {
		t.Error(errors.Unwrap(err))
	}
}
