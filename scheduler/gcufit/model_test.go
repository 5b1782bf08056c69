package gcufit

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	seedFlag  = flag.Uint64("gcufit.seed", 0, "seed of the model test; 0 takes one from the clock and prints it")
	stepsFlag = flag.Int("gcufit.steps", 100_000, "steps of the model test")
)

// perWorld is how many steps one world lives, and perRest how many until it is let come to rest.
const (
	perWorld = 2000
	perRest  = 150
)

// TestModel plays pods, nodes, other schedulers, agents, lost and late answers, lagging informers and
// dying schedulers against the plugin, and compares it with a model of the API server after every step:
//
//   - no card is sold twice by us, whole cards have one holder
//   - the ledger's own invariants hold
//   - at rest the ledger is what the lists of the API say: no leak, no phantom
//   - no pod is bound without a record or without preconditions
//   - nothing sleeps that would fit, and everything comes to rest
//   - Forget is the exact inverse of Assume
//
// Schedulers fight over the lease: a leader that is paused in the middle of whatever it does, or cut off from
// the lease, goes on as a zombie beside its successor. It takes in events, runs cycles, preempts, sends
// Bindings, settles doubts, and may get the lease again; there can be four at once. The election has the
// rules of client-go's elector and LeaseLock, and the time of all clocks is part of the world. With them:
//
//   - at most one of all processes holds the lease by its own reckoning
//   - what was decided in one term takes no effect once pods were looked at in a later one, harm or not
//   - every ledger's own invariants hold, a zombie's too
//   - at rest a zombie's ledger too is what the lists say, since it may lead again
//   - a zombie settles its doubts and ends its Bindings without hindering the leader from coming to rest
//
// Each world has a seed of its own; a failure prints it, and -gcufit.seed replays that world alone.
func TestModel(t *testing.T) {
	if *seedFlag != 0 {
		play(t, *seedFlag, min(*stepsFlag, perWorld))
		return
	}
	seed, start := uint64(time.Now().UnixNano()), time.Now()
	t.Logf("first seed %d", seed)
	done := 0
	for ; done < *stepsFlag && !t.Failed(); seed++ {
		play(t, seed, min(*stepsFlag-done, perWorld))
		done += perWorld
	}
	t.Logf("%d steps in %v", done, time.Since(start).Round(time.Millisecond))
}

// play runs one world.
func play(t *testing.T, seed uint64, count int) {
	t.Helper()
	w := newWorld(seed)
	defer w.end()
	at := 0
	defer func() {
		if r := recover(); r != nil {
			w.trace = append(w.trace, "panic")
			t.Logf("%s", strings.Join(w.trace, "\n"))
			t.Errorf("panic at step %d; replay with -gcufit.seed=%d", at, seed)
			panic(r)
		}
	}()
	for at = range count {
		w.step()
		w.check()
		if w.failure == nil && at%perRest == perRest-1 {
			w.rest()
			w.check()
		}
		if w.failure != nil {
			t.Errorf("step %d: %v\n\nlast steps:\n%s\n\nreplay with -gcufit.seed=%d", at, w.failure, strings.Join(w.trace[max(0, len(w.trace)-60):], "\n"), seed)
			return
		}
	}
}

func (w *world) check() {
	for _, p := range w.alive() {
		if err := p.core.ledger.Check(); err != nil {
			w.fail("ledger of %s: %v", p.id, err)
		}
	}
}

// end ends all processes.
func (w *world) end() {
	for _, p := range w.alive() {
		p.kill()
	}
}

// TestModelReplays holds the model to its word that a seed plays the same world again.
func TestModelReplays(t *testing.T) {
	tell := func() string {
		w := newWorld(7)
		defer w.end()
		for range 700 {
			w.step()
		}
		w.rest()
		return strings.Join(w.trace, "\n") + w.leader.core.ledger.Dump()
	}
	if diff := cmp.Diff(tell(), tell()); diff != "" {
		t.Error(diff)
	}
}
