package exporter_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/topscloud/topscloud/deviceplugin/agent"
	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	eflibsim "github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/test/integration/nodetest"
)

// one is a pod's container c, with a record of so many MiB of each card.
func one(n *nodetest.Node, resource string, amount, mib int64, minors ...int) nodetest.Container {
	c := nodetest.Container{Name: "c", Resource: resource, Amount: amount}
	for _, m := range minors {
		c.Cards = append(c.Cards, n.Card(m, mib))
	}
	return c
}

// Case 43: all ways to hold a card, beside each other and one after the other.
func TestHolders(t *testing.T) {
	t.Parallel()
	const alias = "enflame-tech.com/gcu"
	both, err := nodetest.Names.WithAlias(alias)
	if err != nil {
		t.Fatal(err)
	}
	n := nodetest.New(t, nodetest.Options{Change: func(o *agent.Options) { o.Names = both }})
	e := start(t, n, sim(n)...)
	e.holders("nobody holds anything", want{})

	share := n.Pod("share", one(n, nodetest.Memory, 8, 8*gib, 0))
	n.Run(share)
	e.holders("a share", want{
		named:  []string{"0 share/c"},
		shares: []string{"0 share c memory enflame.com/gcu-memory 8192"},
	})
	whole := n.Pod("whole", one(n, nodetest.Whole, 1, 32*gib, 1))
	n.Run(whole)
	second := n.Pod("second", one(n, nodetest.Slice, 4, 8*gib, 0))
	n.Run(second)
	e.holders("two share card 0, so that its own series name neither", want{
		named: []string{"1 whole/c"},
		shares: []string{
			"0 second c slices enflame.com/shared-gcu 8192", "0 share c memory enflame.com/gcu-memory 8192",
			"1 whole c whole enflame.com/gcu 32768",
		},
	})
	aliased := n.Pod("aliased", one(n, alias, 2, 32*gib, 2, 3))
	n.Run(aliased)
	all := []string{
		"0 second c slices enflame.com/shared-gcu 8192", "0 share c memory enflame.com/gcu-memory 8192",
		"1 whole c whole enflame.com/gcu 32768",
		"2 aliased c whole enflame-tech.com/gcu 32768", "3 aliased c whole enflame-tech.com/gcu 32768",
	}
	full := want{named: []string{"1 whole/c", "2 aliased/c", "3 aliased/c"}, shares: all}
	e.holders("the second name of whole cards", full)

	n.Restart()
	e.holders("another agent tells the same", full)

	// The job is done. Kubelet keeps the pod until somebody deletes it.
	ended(t, n, share)
	e.holders("a pod that has ended owns nothing", want{
		named:  []string{"0 second/c", "1 whole/c", "2 aliased/c", "3 aliased/c"},
		shares: slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == all[1] }),
		// Kubelet lists it until it has ended its containers.
		others: []string{"8 enflame.com/gcu-memory share c"},
	})
	n.Remove(share)
	n.Remove(aliased)
	e.holders("pods that are gone own nothing", want{
		named:  []string{"0 second/c", "1 whole/c"},
		shares: []string{all[0], all[2]},
	})
}

// ended does what kubelet does when a pod's containers have ended for good.
func ended(t *testing.T, n *nodetest.Node, pod *v1.Pod) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		p := n.Get(pod)
		p.Status.Phase = v1.PodSucceeded
		_, err := nodetest.Admin.CoreV1().Pods(n.Namespace).UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// other is a device plugin that is not ours.
type other struct{}

func (other) Allocate(context.Context, []string) (*pluginapi.ContainerAllocateResponse, error) {
	return &pluginapi.ContainerAllocateResponse{}, nil
}

func (other) PreStart(context.Context, []string) error { return nil }

// A resource of our domain that another plugin serves is told by its name, and one of another domain is not. Devices
// of ours that kubelet gave a container which has not started have no card either.
func TestUnknownResources(t *testing.T) {
	t.Parallel()
	n := nodetest.New(t, nodetest.Options{})
	const ours, foreign = "enflame.com/drs-gcu", "acme.com/npu"
	for i, resource := range []string{ours, foreign} {
		devices := &kubelet.Devices{}
		devices.Set([]kubelet.Device{{ID: "a", Healthy: true}, {ID: "b", Healthy: true}})
		s, err := kubelet.New(kubelet.Options{
			Resource: resource, Dir: n.Kubelet.PluginDir(), Prefix: "other", Instance: fmt.Sprint(i), Plugin: other{}, Devices: devices,
			Settle: 20 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		n.Until("kubelet has "+resource, func(context.Context) error {
			if n.Kubelet.Allocatable(resource) != 2 {
				return errors.New("not yet")
			}
			return nil
		})
	}
	n.Run(n.Pod("drs", nodetest.Container{Name: "c", Resource: ours, Amount: 2}))
	n.Run(n.Pod("npu", nodetest.Container{Name: "c", Resource: foreign, Amount: 1}))
	waits := n.Pod("waits", one(n, nodetest.Memory, 3, 3*gib, 2))
	if err := n.Kubelet.Admit(waits); err != nil {
		t.Fatal(err)
	}
	e := start(t, n, sim(n)...)
	e.holders("what no card is known of", want{others: []string{"2 enflame.com/drs-gcu drs c", "3 enflame.com/gcu-memory waits c"}})
	n.StartContainer(waits, "c")
	e.holders("the container has started", want{
		named:  []string{"2 waits/c"},
		shares: []string{"2 waits c memory enflame.com/gcu-memory 3072"},
		others: []string{"2 enflame.com/drs-gcu drs c"},
	})
}

// Without agent or kubelet the cards are told without pods, and failures are counted. All comes back by itself.
func TestAway(t *testing.T) {
	t.Parallel()
	for source, switches := range map[string]struct{ off, on func(*nodetest.Node) error }{
		"agent": {
			off: func(n *nodetest.Node) error { n.Stop(); return nil },
			on:  func(n *nodetest.Node) error { n.Start(); return nil },
		},
		"kubelet": {
			off: func(n *nodetest.Node) error { n.Kubelet.Down(); return nil },
			on:  func(n *nodetest.Node) error { return n.Kubelet.Up() },
		},
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			n := nodetest.New(t, nodetest.Options{})
			e := start(t, n, sim(n)...)
			n.Run(n.Pod("p", one(n, nodetest.Memory, 8, 8*gib, 3)))
			held := want{named: []string{"3 p/c"}, shares: []string{"3 p c memory enflame.com/gcu-memory 8192"}}
			goes := n.Pod("goes", one(n, nodetest.Memory, 1, gib, 0))
			n.Run(goes)
			e.holders("both pods are named", want{
				named:  []string{"0 goes/c", "3 p/c"},
				shares: []string{"0 goes c memory enflame.com/gcu-memory 1024", "3 p c memory enflame.com/gcu-memory 8192"},
			})
			if err := switches.off(n); err != nil {
				t.Fatal(err)
			}
			n.Forget(goes) // a change of the book makes the exporter ask kubelet at once
			e.until("failures of "+source+" are counted", func(p page) error {
				if up := p.series("attribution_up", "source"); !slices.Contains(up, "0 "+source) {
					return fmt.Errorf("up %v", up)
				}
				if failures := p.series("attribution_failures_total", "source"); len(failures) != 2 || slices.Contains(failures, "0 "+source) {
					return fmt.Errorf("failures %v", failures)
				}
				return nil
			})
			e.holders("no pod is named", want{})
			if err := switches.on(n); err != nil {
				t.Fatal(err)
			}
			n.Kubelet.Remove(goes.UID)
			e.holders("the pod is named again", held)
		})
	}
}

// The exporter without privilege sees the cards by sysfs, with uuids that no card has told, beside an agent that asked
// the cards.
func TestExporterBySysfs(t *testing.T) {
	t.Parallel()
	n := nodetest.New(t, nodetest.Options{})
	m, err := eflibsim.Preset("t20x4")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(n.Root, "exporters-host")
	if err := m.WriteSysfs(root); err != nil {
		t.Fatal(err)
	}
	e := start(t, n, "--device-source=sysfs", "--host-root="+root)
	e.tells = []string{"health", "pcie_link_width"}
	n.Run(n.Pod("p", one(n, nodetest.Whole, 1, 32*gib, 2)))
	n.Run(n.Pod("q", one(n, nodetest.Memory, 8, 8*gib, 0)))
	q := "0 q c memory enflame.com/gcu-memory 8192"
	e.holders("cards are known by where they are", want{named: []string{"0 q/c", "2 p/c"}, shares: []string{q, "2 p c whole enflame.com/gcu 32768"}})
	e.until("uuids are those of sysfs", func(p page) error {
		for _, s := range p.series("health", "uuid") {
			if !strings.HasPrefix(s, "0 GCU-PCI-") {
				return errors.New(s)
			}
		}
		return nil
	})
	// The agent sees that the card is gone. What sysfs still shows in its place may be another one.
	n.Faults("unplug 2")
	e.holders("a card was taken out", want{named: []string{"0 q/c"}, shares: []string{q}})
	n.Faults()
	e.holders("it is back", want{named: []string{"0 q/c", "2 p/c"}, shares: []string{q, "2 p c whole enflame.com/gcu 32768"}})
}
