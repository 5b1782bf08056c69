package health_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/eflib"
)

var seed = flag.Uint64("seed", 0, "replay one world of TestLevel")

// TestLevel lets a machine suffer at random, by looks and by the watcher's word alone, with restarts of
// the agent and cards that are exchanged. Whatever happened, a card that is seen for long enough stands as
// in a machine where nothing else ever happened; every change is told once; nobody gets off probation early.
func TestLevel(t *testing.T) {
	t.Parallel()
	worlds := 100
	if os.Getenv("TOPSCLOUD_TEST_FULL") != "" {
		worlds = 10_000
	}
	for range worlds {
		world := *seed
		if world == 0 {
			world = rand.Uint64()
		}
		if !t.Run(fmt.Sprint(world), func(t *testing.T) { live(t, world) }) {
			t.Fatalf("replay with -run TestLevel -seed %d", world)
		}
		if *seed != 0 {
			return
		}
	}
}

func randomFaults(r *rand.Rand) string {
	kinds := []string{"unplug %d", "hang %d", "unreadable %d", "unhealthy %d x", "unhealthy %d y", "ecc-double-bit %d 3",
		"too-hot %d", "link %d 4 8"}
	var lines []string
	for minor := range 4 {
		if r.IntN(3) == 0 {
			lines = append(lines, fmt.Sprintf(kinds[r.IntN(len(kinds))], minor))
		}
	}
	if r.IntN(12) == 0 {
		lines = append(lines, "driver none")
	}
	return strings.Join(lines, "\n")
}

func live(t *testing.T, world uint64) {
	r := rand.New(rand.NewPCG(world, 1))
	h := newHost(t, "t20x4", health.Options{})
	first := slices.Clone(h.machine.Cards)
	h.update(h.look(""))
	shown := map[string]health.Card{}
	lastFaulty := map[string]time.Time{}
	for _, c := range h.tracker.Report().Cards {
		shown[c.UUID] = c
	}
	faults := ""
	see := func(s seen) {
		t.Helper()
		for _, c := range h.update(s) {
			before, known := shown[c.Card.UUID]
			// After a restart nothing is present until it is seen.
			before.Present, c.Before.Present = false, false
			before.Usable, c.Before.Usable = false, false
			if known != (c.Before.UUID != "") || known == (c.Kind == health.Appeared) && known || say(before) != say(c.Before) {
				t.Fatalf("told %v of %s as a change of %s; it was %s", c.Kind, c.Card.UUID, say(c.Before), say(before))
			}
			if is := say(c.Card); known && is == say(before) && c.Kind != health.OtherCauses {
				t.Fatalf("told %v of %s, which is %s as before", c.Kind, c.Card.UUID, is)
			}
		}
		for _, c := range h.tracker.Report().Cards {
			now := h.now
			if c.Faulty {
				lastFaulty[c.UUID] = now
			}
			if at, was := lastFaulty[c.UUID]; c.Usable && was && now.Before(at.Add(health.DefaultProbation)) {
				t.Fatalf("%s is usable %v after it was faulty", c.UUID, now.Sub(at))
			}
			if c.Usable && (c.Faulty || !c.Present || len(c.Findings) > 0 || !c.ProbationUntil.IsZero()) || c.Usable != (c.Problem() == "") {
				t.Fatalf("usable, and %+v", c)
			}
			shown[c.UUID] = c
		}
		if again := h.tracker.Update(h.now, s.state, nil, nil); len(again) > 0 {
			t.Fatalf("told again: %s", kinds(again))
		}
	}
	for range 60 {
		h.now = h.now.Add(time.Duration(r.IntN(40_000)) * time.Millisecond)
		if r.IntN(3) > 0 {
			faults = randomFaults(r)
		}
		switch r.IntN(12) {
		case 0:
			h.restart()
		case 1: // another card in its place, or the first one back
			i := r.IntN(4)
			h.machine.Cards[i].UUID = fmt.Sprintf("GCU-%d-%d", i, r.IntN(3))
		case 2:
			i := r.IntN(4)
			h.machine.Cards[i].UUID = first[i].UUID
		case 3:
			h.edit = map[int]func(*eflib.Sample){r.IntN(4): hot(float64(80 + r.IntN(20)))}
		case 4:
			h.edit = map[int]func(*eflib.Sample){r.IntN(4): log(uint64(r.IntN(4)), uint64(r.IntN(4)))}
		}
		s := h.look(faults)
		if r.IntN(2) == 0 {
			s.samples, s.errs = nil, nil
		}
		see(s)
	}

	// Quiet: the first cards, some last faults, the driver there.
	for i := range first {
		h.machine.Cards[i].UUID = first[i].UUID
	}
	faults = strings.ReplaceAll(randomFaults(r), "driver none", "")
	h.edit = nil
	if strings.Contains(faults, "hang") || strings.Contains(faults, "unreadable") {
		// A card that says nothing stands as it did when it last said something; so let it say something.
		h.now = h.now.Add(time.Minute)
		see(h.look(""))
		h.now = h.now.Add(time.Minute)
		see(h.look(""))
	}
	untroubled := newHost(t, "t20x4", health.Options{})
	untroubled.update(untroubled.look(""))
	for range 6 {
		h.now = h.now.Add(17 * time.Minute)
		see(h.look(faults))
		untroubled.now = h.now
		untroubled.update(untroubled.look(faults))
	}
	stands := func(h *host) map[string]string {
		out := map[string]string{}
		for _, c := range h.tracker.Report().Cards {
			if slices.ContainsFunc(first, func(d eflib.Device) bool { return d.UUID == c.UUID }) {
				out[c.UUID] = say(c)
			}
		}
		return out
	}
	if diff := cmp.Diff(stands(untroubled), stands(h)); diff != "" {
		t.Fatalf("after the faults %q (-untroubled +troubled):\n%s", faults, diff)
	}
	if diff := cmp.Diff(causes(untroubled.tracker.Report().Host), causes(h.tracker.Report().Host)); diff != "" {
		t.Fatalf("host:\n%s", diff)
	}
}
