package plugin

import (
	"fmt"
	"strconv"

	"github.com/topscloud/topscloud/topology"
)

// ID returns kubelet's ID of a card.
func ID(minor int) string { return strconv.Itoa(minor) }

// ParseID returns the card of an ID. Only what ID returns is one: "07", "+7" and "128" are not.
func ParseID(id string) (int, error) {
	minor, err := strconv.Atoi(id)
	if err != nil || ID(minor) != id || minor < 0 || minor >= topology.MaxCards {
		return 0, fmt.Errorf("device ID %q: want a card's minor, 0 to %d", id, topology.MaxCards-1)
	}
	return minor, nil
}
