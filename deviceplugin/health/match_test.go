package health_test

import (
	"testing"

	"github.com/topscloud/topscloud/deviceplugin/health"
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	h := newHost(t, "s60x8", health.Options{})
	old := h.machine.Cards[3].UUID
	h.update(h.look("unhealthy 3 x"))

	h.machine.Cards[3].UUID = "GCU-NEW"
	changes := h.update(h.look(""))
	if got := kinds(changes); got != "3 replaced" {
		t.Errorf("told %s", got)
	}
	if c := h.card(3); c.UUID != "GCU-NEW" || say(c) != "usable" {
		t.Errorf("the new card: %s %s", c.UUID, say(c))
	}
	var was *health.Card
	for _, c := range h.tracker.Report().Cards {
		if c.UUID == old {
			was = &c
		}
	}
	if was == nil || was.Present || !was.Faulty || causes(was.Findings) != "off-bus" {
		t.Errorf("the old card: %+v", was)
	}
	if h.tracker.Forget("GCU-NEW") || !h.tracker.Forget(old) || len(h.tracker.Report().Cards) != 8 {
		t.Error("only a card that is gone is forgotten")
	}

	// The cards are numbered anew: nobody is gone.
	h.machine.Cards[3].Minor, h.machine.Cards[4].Minor = 4, 3
	if got := h.update(h.look("")); len(got) > 0 {
		t.Errorf("told %s", kinds(got))
	}
	if c := h.card(4); c.UUID != "GCU-NEW" {
		t.Errorf("card 4 is %s", c.UUID)
	}

	// A card that does not tell its uuid is the one that was there.
	uuid := h.machine.Cards[0].UUID
	h.machine.Cards[0].UUID = ""
	h.restart()
	if got := h.update(h.look("")); len(got) > 0 || h.card(0).UUID != uuid {
		t.Errorf("told %s; card 0 is %q", kinds(got), h.card(0).UUID)
	}
}
