package health

import (
	"slices"

	"github.com/topscloud/topscloud/eflib"
)

// match finds the card that each device is, and makes those that were not known. A uuid may move to
// another minor (the cards were numbered anew); no card is found twice.
func (t *Tracker) match(devices []eflib.Device) []*track {
	listed := make([]*track, len(devices))
	taken := make(map[*track]bool, len(devices))
	byUUID := make(map[string][]*track, len(t.cards))
	for _, c := range t.cards {
		byUUID[c.uuid] = append(byUUID[c.uuid], c)
	}
	take := func(i int, is func(*track) bool, among []*track) {
		if listed[i] != nil {
			return
		}
		if at := slices.IndexFunc(among, func(c *track) bool { return !taken[c] && is(c) }); at >= 0 {
			listed[i] = among[at]
			taken[among[at]] = true
		}
	}
	for i, d := range devices {
		if d.UUID != "" {
			take(i, func(c *track) bool { return c.minor == d.Minor }, byUUID[d.UUID])
		}
	}
	for i, d := range devices {
		if d.UUID != "" {
			take(i, func(*track) bool { return true }, byUUID[d.UUID])
			// A card that had not told its uuid tells it now.
			take(i, func(c *track) bool { return c.at(d) }, byUUID[""])
		}
	}
	for i, d := range devices {
		if d.UUID == "" {
			// Among several cards that were there it is the one that was not seen to go.
			take(i, func(c *track) bool { return c.at(d) && c.found.weightOf(OffBus) == 0 }, t.cards)
		}
		if listed[i] == nil {
			listed[i] = &track{minor: d.Minor}
			t.cards = append(t.cards, listed[i])
		}
	}
	return listed
}

// at says whether the card was last seen where the device is.
func (c *track) at(d eflib.Device) bool {
	return c.minor == d.Minor && c.device.PCIAddress == d.PCIAddress
}

// see notes where a listed card is and what it is.
func (c *track) see(d eflib.Device) {
	if d.UUID != "" {
		c.uuid = d.UUID
	}
	d.Bridges = slices.Clone(d.Bridges)
	c.minor, c.device, c.present = d.Minor, d, true
}
