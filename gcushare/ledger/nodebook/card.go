package nodebook

import (
	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
)

// On says whether a holding is of the card that its reader sees as d.
//
// Agent and reader may see one card by different means. One of them asks the card for its uuid, the other reads the
// host's /sys and makes one of the card's address, or the card did not answer it. So uuids that differ tell two cards
// apart only where both come from cards. Then the PCI address decides: the agent tells it only while it sees the card
// with the holding's uuid there, so whoever holds a card that was taken out is not named on the one in its place.
func (h *Holding) On(d *eflib.Device) bool {
	if h.Minor != d.Minor {
		return false
	}
	placed := h.PCIBusID != ""
	if placed && h.PCIBusID != d.PCIAddress.String() {
		return false
	}
	mine, seen := contract.NormalUUID(h.UUID), contract.NormalUUID(d.UUID)
	if mine != "" && mine == seen {
		return true
	}
	return placed && (!eflib.OwnUUID(mine) || !eflib.OwnUUID(seen))
}
