package gcufit

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
)

// fixture is a scheduler process in a calm world without machines: a test makes what it needs, and
// nothing happens by itself.
type fixture struct {
	*process
	t      testing.TB
	ledger *ledger.Ledger
}

func newFixture(t testing.TB, nodes ...*v1.Node) *fixture {
	return fixtureIn(t, bareWorld(1), nodes...)
}

// newElectedFixture is one whose process holds a lease, which others can get.
func newElectedFixture(t testing.TB, nodes ...*v1.Node) *fixture {
	w := bareWorld(1)
	w.election.on = true
	return fixtureIn(t, w, nodes...)
}

func fixtureIn(t testing.TB, w *world, nodes ...*v1.Node) *fixture {
	w.calm = true
	for _, n := range nodes {
		n.ResourceVersion = w.version()
		w.nodes[n.Name] = n
	}
	w.leader = newProcess(w)
	w.leader.elect()
	w.leader.deliverAll()
	if _, err := w.leader.core.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	ledgertest.Guard(t, w.leader.core.ledger)
	t.Cleanup(func() {
		w.end()
		if w.failure != nil {
			t.Error(w.failure)
		}
	})
	return &fixture{process: w.leader, t: t, ledger: w.leader.core.ledger}
}

// restart ends the process and goes on with another one that lists anew.
func (f *fixture) restart() {
	f.kill()
	f.w.leader = newProcess(f.w)
	f.w.leader.deliverAll()
	ledgertest.Guard(f.t, f.w.leader.core.ledger)
	f.process, f.ledger = f.w.leader, f.w.leader.core.ledger
}

// successor gets the lease in the usual way, while the process before is paused.
func (f *fixture) successor() *fixture {
	f.t.Helper()
	w := f.w
	w.standby = newProcess(w)
	w.succeed()
	w.leader.deliverAll()
	ledgertest.Guard(f.t, w.leader.core.ledger)
	return &fixture{process: w.leader, t: f.t, ledger: w.leader.core.ledger}
}

// create stores pods in the API. The scheduler does not hear of them yet.
func (f *fixture) create(pods ...*v1.Pod) {
	for _, p := range pods {
		f.w.write(p, nil)
	}
}

// place runs one pod's scheduling cycle up to its reservation, at the pod's present version.
func (f *fixture) place(name string) (*flight, *fwk.Status) {
	f.t.Helper()
	pod := f.w.pods[name]
	e := f.entries[pod.UID]
	if e == nil {
		e = &entry{pod: pod}
		f.entries[pod.UID] = e
	}
	n := len(f.binding)
	f.cycle(e)
	if len(f.binding) == n {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	return f.binding[len(f.binding)-1], nil
}

// bindNow takes a flight to its end and returns what Bind answered.
func (f *fixture) bindNow(x *flight) *fwk.Status {
	for i := range f.binding {
		if f.binding[i] == x {
			f.binding = append(f.binding[:i], f.binding[i+1:]...)
			break
		}
	}
	status := f.plugin.Bind(f.t.Context(), x.state, x.pod, x.node)
	if !status.IsSuccess() {
		f.plugin.Unreserve(f.t.Context(), x.state, x.pod, x.node)
		f.gone(x.pod)
	}
	return status
}

// run places and binds a pod.
func (f *fixture) run(name string) bool {
	f.t.Helper()
	x, status := f.place(name)
	return status.IsSuccess() && x != nil && f.bindNow(x).IsSuccess()
}

// used is what is booked on a card.
func (f *fixture) used(node string, minor int) int64 {
	f.t.Helper()
	n := f.ledger.Node(node)
	if n == nil || n.Index(minor) < 0 {
		f.t.Fatalf("no card %d on node %s", minor, node)
	}
	return n.Cards[n.Index(minor)].UsedMiB
}
