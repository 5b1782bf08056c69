package attribution_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/exporter/attribution"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
)

const memory = "enflame.com/gcu-memory"

// node is an agent and a kubelet that say what they are told to.
type node struct {
	mu         sync.Mutex // guards all
	book       *nodebook.Book
	list       []*podresourcesapi.PodResources
	agent      error
	kubelet    error
	told       chan struct{} // closed when book or agent change
	failed     map[string]int
	lists      int
	attributor *attribution.Attributor
}

func start(t *testing.T) *node {
	t.Helper()
	n := &node{told: make(chan struct{}), failed: map[string]int{}}
	a, err := attribution.New(attribution.Options{Books: n, Kubelet: n, Domain: "enflame.com", Failed: func(what string) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.failed[what]++
	}})
	if err != nil {
		t.Fatal(err)
	}
	n.attributor = a
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	return n
}

func (n *node) change(f func()) {
	n.mu.Lock()
	f()
	close(n.told)
	n.told = make(chan struct{})
	n.mu.Unlock()
	synctest.Wait()
}

func (n *node) Watch(ctx context.Context, got func(*nodebook.Book)) error {
	for {
		n.mu.Lock()
		book, err, told := n.book, n.agent, n.told
		n.mu.Unlock()
		if err != nil {
			return err
		}
		if book != nil {
			got(book)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-told:
		}
	}
}

func (n *node) List(context.Context, time.Time) ([]*podresourcesapi.PodResources, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lists++
	return n.list, n.kubelet
}

func (n *node) says(t *testing.T, want ...string) {
	t.Helper()
	s := n.attributor.Latest()
	got := []string{}
	for _, h := range s.Holdings {
		got = append(got, fmt.Sprintf("card %d: %s %s %d", h.Minor, h.PodUID, h.Container, h.MemoryMiB))
	}
	for _, o := range s.Others {
		got = append(got, fmt.Sprintf("%s %s: %d of %s", o.Pod, o.Container, o.Count, o.Resource))
	}
	if s.Agent != nil {
		got = append(got, "agent: "+s.Agent.Error())
	}
	if s.Kubelet != nil {
		got = append(got, "kubelet: "+s.Kubelet.Error())
	}
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
}

func holding(minor int, pod, resource string) nodebook.Holding {
	return nodebook.Holding{
		Minor: minor, UUID: fmt.Sprint("GCU-", minor), PodUID: "uid-" + pod, Namespace: "ns", Pod: pod,
		Container: "main", Resource: resource, Kind: nodebook.Memory, MemoryMiB: 1024,
	}
}

func book(list ...nodebook.Holding) *nodebook.Book {
	return &nodebook.Book{Version: nodebook.Version, Holdings: list}
}

func listed(pod, resource string, ids ...string) *podresourcesapi.PodResources {
	return &podresourcesapi.PodResources{Namespace: "ns", Name: pod, Containers: []*podresourcesapi.ContainerResources{{
		Name: "main", Devices: []*podresourcesapi.ContainerDevices{{ResourceName: resource, DeviceIds: ids}},
	}}}
}

// Kubelet's IDs say nothing of cards: the book does. What only one of them knows is not told as a holding.
func TestJoin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		synctest.Wait()
		n.says(t, "agent: not asked yet")
		n.change(func() {
			n.book = book(holding(5, "a", memory), holding(6, "gone", memory))
			n.list = []*podresourcesapi.PodResources{
				listed("a", memory, "u0001", "u0002"), listed("b", "enflame.com/drs-gcu", "1-2"), listed("c", "nvidia.com/gpu", "0"),
			}
		})
		n.says(t, "card 5: uid-a main 1024", "b main: 1 of enflame.com/drs-gcu")
		if list := n.attributor.Latest().Of(&eflib.Device{Minor: 5, UUID: "GCU-5"}); len(list) != 1 {
			t.Error("card 5 has one holder")
		}
		if list := n.attributor.Latest().Of(&eflib.Device{Minor: 5, UUID: "GCU-other"}); len(list) != 0 {
			t.Error("another card of that number has a holder")
		}
		n.change(func() {
			n.book = book(holding(5, "a", memory), holding(5, "b", memory))
			n.list = append(n.list, listed("b", memory, "u0003"))
		})
		if list := n.attributor.Latest().Of(&eflib.Device{Minor: 5, UUID: "GCU-5"}); len(list) != 2 {
			t.Error("card 5 has two holders")
		}
	})
}

// Whole cards may have a second name of another domain. It counts by its exact name, and other resources of that domain
// are nothing to us.
func TestSecondNameOfAnotherDomain(t *testing.T) {
	t.Parallel()
	const alias = "enflame-tech.com/gcu"
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		n.change(func() {
			n.book = book(holding(1, "a", alias), holding(2, "b", alias), holding(3, "c", alias))
			n.list = []*podresourcesapi.PodResources{
				listed("a", alias, "7"), listed("b", "enflame-tech.com/gcu-memory", "u0001"), listed("c", "enflame.com/gcu", "3"),
				listed("d", alias, "8"), // the agent has given it no card yet
			}
		})
		n.says(t, "card 1: uid-a main 1024", "c main: 1 of enflame.com/gcu")
	})
}

// A pod that ended is gone from kubelet's list before the agent's book follows, or after.
func TestEndedPodOwnsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		n.change(func() {
			n.book, n.list = book(holding(0, "a", memory)), []*podresourcesapi.PodResources{listed("a", memory, "u0000")}
		})
		n.says(t, "card 0: uid-a main 1024")
		n.mu.Lock()
		n.list = nil
		n.mu.Unlock()
		time.Sleep(11 * time.Second) // kubelet is asked every ten
		synctest.Wait()
		n.says(t)
	})
}

// Case 43, third scrape, and its like for the agent: without one of the two nothing is attributed, after a moment
// that a restart may take, and failures are counted. It comes back by itself.
func TestAway(t *testing.T) {
	t.Parallel()
	for _, what := range []string{attribution.AgentFailed, attribution.KubeletFailed} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := start(t)
				n.change(func() {
					n.book, n.list = book(holding(0, "a", memory)), []*podresourcesapi.PodResources{listed("a", memory, "u0000")}
				})
				away := errors.New("connection refused")
				fail := func(err error) {
					n.change(func() {
						if what == attribution.AgentFailed {
							n.agent = err
						} else {
							n.kubelet = err
						}
					})
				}
				fail(away)
				n.says(t, "card 0: uid-a main 1024")
				time.Sleep(30 * time.Second)
				synctest.Wait()
				n.says(t, what+": connection refused")
				n.mu.Lock()
				if n.failed[what] == 0 {
					t.Errorf("failures %v, want some of %s", n.failed, what)
				}
				n.mu.Unlock()
				fail(nil)
				time.Sleep(2 * time.Second) // whoever is away is asked every second
				synctest.Wait()
				n.says(t, "card 0: uid-a main 1024")
			})
		})
	}
}

// A quiet node is asked about now and then, not all the time.
func TestQuietNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		n.change(func() { n.book = book() })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.lists < 55 || n.lists > 65 {
			t.Errorf("kubelet was asked %d times in ten minutes, want once in ten seconds", n.lists)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := attribution.New(attribution.Options{}); err == nil {
		t.Error("want an error")
	}
}
