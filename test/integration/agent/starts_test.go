package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/topscloud/topscloud/deviceplugin/agent"
	"github.com/topscloud/topscloud/internal/contract"
)

// A thousand containers start, many at once, on a node with a hundred and ten pods; others end and start again,
// pods go, agents follow each other. Each container sees its record's cards whenever it starts, no card is promised
// twice, and nothing is left when the last pod has gone.
func TestManyStarts(t *testing.T) {
	live, starts := 12, 60
	if os.Getenv("TOPSCLOUD_TEST_FULL") != "" {
		live, starts = 110, 1000
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	n := newNodeOf(t, "s60x8", func(o *agent.Options) { o.HealthInterval, o.UnitMiB = time.Second, unitMiB })
	c := &crowd{node: n, random: rand.New(rand.NewPCG(seed, 0))}
	for minor := range c.free {
		c.free[minor] = cardMiB
	}
	c.offered()
	before := left(t, n)
	for round := 0; len(c.quiet)+len(c.busy) < starts; round++ {
		c.round(live)
		c.check()
		switch round % 3 {
		case 0:
			n.Restart()
			c.offered()
		case 1:
			if err := n.Kubelet.Restart(); err != nil {
				t.Fatal(err)
			}
			c.offered()
		}
		if t.Failed() {
			return
		}
	}
	for _, p := range c.pods {
		n.Remove(p.pod)
	}
	c.empty()
	c.offered()
	n.Until("what was opened is closed", func(context.Context) error {
		now := left(t, n)
		// Connections to the API server come and go by themselves.
		if now.goroutines > before.goroutines+5 || now.files > before.files+3 || now.sockets != before.sockets {
			return fmt.Errorf("left: %+v, before the first pod: %+v", now, before)
		}
		return nil
	})
	n.Stop()
	if now := left(t, n); now.sockets != 0 || now.tickets != 0 {
		t.Errorf("stopped, and still there: %+v", now)
	}
	t.Logf("with up to %d pods: %s; while agents followed each other: %s, %d of them refused once or more, and %d pods failed in admission",
		live, c.quiet, c.busy, c.again.Load(), c.failed.Load())
}

// durations are how long starts took.
type durations []time.Duration

func (d durations) String() string {
	if len(d) == 0 {
		return "no starts"
	}
	slices.Sort(d)
	at := func(part float64) time.Duration { return d[int(part*float64(len(d)-1))].Round(100 * time.Microsecond) }
	return fmt.Sprintf("%d starts, half took up to %v, 99 of 100 up to %v", len(d), at(0.5), at(0.99))
}

// crowd is the pods of one node, and what their scheduler has promised them.
type crowd struct {
	node   *node
	random *rand.Rand
	pods   []*tenant
	// free is the memory of each card that no pod has. The first two cards are for pods that want whole ones.
	free [8]int64
	made int
	// moving is set while agents follow each other: a call of kubelet may be cut then.
	moving        bool
	again, failed atomic.Int64

	mu          sync.Mutex
	quiet, busy durations
}

const (
	wholeCards = 2
	cardMiB    = 42976 // of an S60
	unitMiB    = 512
)

// tenant is a pod with what its containers have to see.
type tenant struct {
	pod   *v1.Pod
	wants map[string][]contract.CardAllocation
	holds map[int]int64
}

// offered waits until kubelet has a list of every resource.
func (c *crowd) offered() {
	n := c.node
	n.t.Helper()
	n.Until("every resource is offered", func(context.Context) error {
		if err := n.Agent.Ready(); err != nil {
			return err
		}
		for _, resource := range []string{memory, slice, whole} {
			if n.Kubelet.Allocatable(resource) == 0 {
				return fmt.Errorf("no %s", resource)
			}
		}
		return nil
	})
}

// plan lets pods go, and promises cards to new ones until live pods are there. It does by itself what a scheduler
// does: what a pod had is free once the API server has forgotten it.
func (c *crowd) plan(live int) (stay, come []*tenant) {
	for _, p := range c.pods {
		if c.random.IntN(6) > 0 {
			stay = append(stay, p)
			continue
		}
		c.node.Remove(p.pod)
		for minor, mib := range p.holds {
			c.free[minor] += mib
		}
	}
	for len(stay)+len(come) < live {
		c.made++
		p := &tenant{wants: map[string][]contract.CardAllocation{}, holds: map[int]int64{}}
		var containers []container
		add := func(name, resource string, amount int64, init bool, cards ...contract.CardAllocation) {
			for _, card := range cards {
				c.free[card.Minor] -= card.MemoryMiB
				p.holds[card.Minor] += card.MemoryMiB
			}
			p.wants[name] = cards
			containers = append(containers, container{Name: name, Resource: resource, Amount: amount, Init: init, Cards: cards})
		}
		units := 1 + c.random.Int64N(2)
		share := func() contract.CardAllocation { return c.share(units * unitMiB) }
		switch kind := c.random.IntN(8); {
		case kind == 0 && c.wholeFree() >= 0:
			add("c", whole, 1, false, c.node.Card(c.wholeFree(), cardMiB))
		case kind == 1:
			add("c", slice, 1, false, c.share(cardMiB/16))
		case kind == 2: // two of one size
			add("c", memory, units, false, share())
			add("d", memory, units, false, share())
		case kind == 3: // kubelet gives both the same IDs
			add("i", memory, units, true, share())
			add("c", memory, units, false, share())
		case kind == 4: // one container on two cards
			first := share()
			c.free[first.Minor] -= 1 << 40
			second := share()
			c.free[first.Minor] += 1 << 40
			add("c", memory, 2*units, false, first, second)
		default:
			add("c", memory, units, false, share())
		}
		p.pod = c.node.Pod(fmt.Sprintf("p%d", c.made), containers...)
		come = append(come, p)
	}
	return stay, come
}

// share promises memory of some card that has it.
func (c *crowd) share(mib int64) contract.CardAllocation {
	var fit []int
	for minor := wholeCards; minor < len(c.free); minor++ {
		if c.free[minor] >= mib {
			fit = append(fit, minor)
		}
	}
	if len(fit) == 0 {
		c.node.t.Fatalf("the test has promised all memory: %v", c.free)
	}
	return c.node.Card(fit[c.random.IntN(len(fit))], mib)
}

func (c *crowd) wholeFree() int {
	for minor := range wholeCards {
		if c.free[minor] == cardMiB {
			return minor
		}
	}
	return -1
}

// round starts the containers of new pods and of some that ran, eight at a time, one round in two while an agent
// takes over from another.
func (c *crowd) round(live int) {
	n := c.node
	stay, come := c.plan(live)
	var work []func()
	for _, p := range stay {
		if c.random.IntN(3) == 0 {
			work = append(work, func() {
				for _, container := range slices.Concat(p.pod.Spec.InitContainers, p.pod.Spec.Containers) {
					n.Kubelet.Exit(p.pod.UID, container.Name)
					c.start(p, container.Name)
				}
			})
		}
	}
	var mu sync.Mutex
	c.pods = stay
	for _, p := range come {
		work = append(work, func() {
			if err := n.Kubelet.Admit(p.pod); err != nil {
				if !c.moving {
					n.t.Errorf("pod %s: %v", p.pod.Name, err)
				}
				c.failed.Add(1)
				n.Forget(p.pod)
				mu.Lock()
				defer mu.Unlock()
				for minor, mib := range p.holds {
					c.free[minor] += mib
				}
				return
			}
			mu.Lock()
			c.pods = append(c.pods, p)
			mu.Unlock()
			for _, container := range slices.Concat(p.pod.Spec.InitContainers, p.pod.Spec.Containers) {
				c.start(p, container.Name)
			}
		})
	}
	c.random.Shuffle(len(work), func(i, j int) { work[i], work[j] = work[j], work[i] })
	c.moving = c.random.IntN(2) == 0
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8)
	for i, f := range work {
		if c.moving && i == len(work)/2 {
			next, stop := n.Spawn(fmt.Sprintf("next-%d", c.made))
			n.Until("the new agent is ready", func(context.Context) error { return next.Ready() })
			n.Stop()
			n.Agent, n.Stop = next, sync.OnceFunc(stop)
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f()
		})
	}
	wg.Wait()
	// Pods that were admitted by chance: the order of the list must not depend on it, or the seed tells nothing.
	slices.SortFunc(c.pods, func(a, b *tenant) int { return strings.Compare(a.pod.Name, b.pod.Name) })
}

// start starts a container as kubelet does and looks at once at what the engine finds for it.
func (c *crowd) start(p *tenant, container string) {
	n := c.node
	begin, tries := time.Now(), 0
	var tickets []string
	n.Until("container "+container+" of "+p.pod.Name+" starts", func(context.Context) error {
		o, err := n.Kubelet.Start(p.pod.UID, container)
		if err != nil {
			if tries++; !c.moving {
				n.t.Errorf("pod %s, container %s: %v", p.pod.Name, container, err)
			}
			return err
		}
		tickets = o.CDIDevices
		return nil
	})
	took := time.Since(begin)
	if tries > 0 {
		c.again.Add(1)
	}
	c.mu.Lock()
	if c.moving {
		c.busy = append(c.busy, took)
	} else {
		c.quiet = append(c.quiet, took)
	}
	c.mu.Unlock()
	cache, err := cdi.NewCache(cdi.WithSpecDirs(n.CDIDir()), cdi.WithAutoRefresh(false))
	if err != nil {
		n.t.Error(err)
		return
	}
	c.compare(cache, p, container, tickets)
}

// compare holds what the engine resolves to a container's entry of the record.
func (c *crowd) compare(cache *cdi.Cache, p *tenant, container string, tickets []string) {
	t := c.node.t
	if len(tickets) != 1 {
		t.Errorf("pod %s, container %s: tickets %v", p.pod.Name, container, tickets)
		return
	}
	d := cache.GetDevice(tickets[0])
	if d == nil {
		t.Errorf("pod %s, container %s: CreateContainerError: ticket %s cannot be resolved: %v", p.pod.Name, container, tickets[0], cache.GetErrors())
		return
	}
	var minors, sizes, paths []string
	for _, card := range p.wants[container] {
		minors = append(minors, fmt.Sprint(card.Minor))
		sizes = append(sizes, fmt.Sprint(card.MemoryMiB))
		paths = append(paths, fmt.Sprintf("/dev/gcu%d", card.Minor))
	}
	want := []string{contract.EnvVisibleDevices + "=" + strings.Join(minors, ","), contract.EnvUsableMemory + "=" + strings.Join(sizes, ",")}
	if !slices.Equal(d.ContainerEdits.Env, want) {
		t.Errorf("pod %s, container %s sees %v, its record says %v", p.pod.Name, container, d.ContainerEdits.Env, want)
	}
	var got []string
	for _, node := range d.ContainerEdits.DeviceNodes {
		got = append(got, node.Path)
	}
	if paths = append(paths, contract.ControlDevice); !slices.Equal(got, paths) {
		t.Errorf("pod %s, container %s gets %v, want %v", p.pod.Name, container, got, paths)
	}
}

// check holds the node's book and all its tickets to the pods that are there.
func (c *crowd) check() {
	n := c.node
	n.t.Helper()
	n.Until("the book has the pods that are there", func(context.Context) error {
		if got := len(n.Agent.Book().Pods); got != len(c.pods) {
			return fmt.Errorf("%d in the book, %d are there", got, len(c.pods))
		}
		return nil
	})
	n.Check()
	cache, err := cdi.NewCache(cdi.WithSpecDirs(n.CDIDir()), cdi.WithAutoRefresh(false))
	if err != nil {
		n.t.Fatal(err)
	}
	tickets := map[string][]string{}
	for _, ticket := range n.Agent.Book().Tickets {
		key := ticket.PodUID + "/" + ticket.Container
		tickets[key] = append(tickets[key], names.Domain+"/"+names.CDIClass()+"="+ticket.Name)
	}
	for _, p := range c.pods {
		for container := range p.wants {
			c.compare(cache, p, container, tickets[string(p.pod.UID)+"/"+container])
		}
	}
}

// empty waits until the node has nothing of pods that are gone. Tickets whose pod failed in admission have no pod:
// they are kept for the minute in which kubelet might still write them down.
func (c *crowd) empty() {
	n := c.node
	n.t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(n.t.Context(), 20*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) {
		book, now := n.Agent.Book(), left(n.t, n)
		last = nil
		if len(book.Pods)+len(book.Tickets)+now.tickets > 0 {
			last = fmt.Errorf("%d pods and %d tickets in the book, %d CDI files", len(book.Pods), len(book.Tickets), now.tickets)
		}
		return last == nil, nil
	})
	if err != nil {
		n.t.Fatalf("left behind: %v", last)
	}
}

// leftovers counts what this process and the node's folders have open.
type leftovers struct{ goroutines, files, sockets, tickets int }

func left(t *testing.T, n *node) leftovers {
	t.Helper()
	out := leftovers{goroutines: runtime.NumGoroutine()}
	for _, pattern := range []string{filepath.Join(n.Kubelet.PluginDir(), "enflame*.sock"), n.BookSocket() + ".*"} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out.sockets += len(list)
	}
	for dir, count := range map[string]*int{n.CDIDir(): &out.tickets, "/proc/self/fd": &out.files} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		*count = len(entries)
	}
	return out
}
