package gcufit

import (
	"slices"
	"time"

	"github.com/topscloud/topscloud/gcushare/ledger"
)

// failOver ends the leader, some of whose Bindings are on their way, and has another process lead: a
// standby whose informers lag, or a fresh one.
func (w *world) failOver() {
	if w.leader.busy || w.standby == nil && w.chance(60) {
		if w.standby == nil {
			w.standby = newProcess(w)
		}
		return
	}
	if w.chance(30) {
		w.leader.release()
	}
	w.die(w.leader)
	w.succeed()
}

// die ends a process, some of whose Bindings are on their way.
func (w *world) die(p *process) {
	w.note("%s dies", p.id)
	for _, f := range p.binding {
		// A zombie's Binding is one that it sent while it led, not one that it would have sent by and by.
		c := readCycle(f.state)
		if h := p.core.ledger.Holder(f.pod.UID); h != nil && h.State == ledger.InFlight && h.Node == f.node && p.core.lease.Check(c.term) == nil && w.chance(60) {
			if b, err := p.plugin.newBinding(f.pod, f.node, h, c.req); err == nil {
				w.late = append(w.late, stamp(b, f.term))
			}
		}
	}
	p.kill()
}

// campaign has somebody else try for the lease.
func (w *world) campaign() {
	if w.standby != nil {
		w.standby.elect()
	} else if w.chance(20) {
		w.standby = newProcess(w)
	}
}

// stall is time in which nothing runs: a machine that swaps, a network that is down.
func (w *world) stall() {
	d := time.Duration(5+w.rng.IntN(20)) * time.Second
	w.note("all stalls for %s", d)
	w.pass(d)
}

// usurp has somebody else get the lease while the leader, in the middle of whatever it does, is paused.
func (w *world) usurp() {
	if w.leader.electing {
		return
	}
	w.note("%s is paused", w.leader.id)
	w.succeed()
	w.leader.deliverAll()
}

// cut keeps the leader from the lease and from nothing else, or ends that.
func (w *world) cut() {
	if w.leader.cut = !w.leader.cut; w.leader.cut {
		w.note("%s is cut off from the lease", w.leader.id)
	}
}

// haunt has a zombie go on: it takes in events, places pods, sends Bindings, finds out about lost answers,
// hears that it lost the lease, gets it again, or ends at last.
func (w *world) haunt() {
	if len(w.zombies) == 0 {
		return
	}
	z := w.zombies[w.rng.IntN(len(w.zombies))]
	switch act := w.rng.IntN(100); {
	case act < 30:
		z.deliver()
	case act < 50:
		if !z.busy {
			z.schedule()
		}
	case act < 70:
		z.bindOne()
	case act < 80:
		z.resumeOne()
	case act < 88:
		z.settleOne()
	case act < 92:
		z.elect()
	case act < 95:
		z.cut = !z.cut
	case act < 97:
		z.deliverAll()
	case !z.busy:
		w.zombies = slices.DeleteFunc(w.zombies, func(p *process) bool { return p == z })
		w.die(z)
	}
}
