package eflib

import (
	"errors"
	"fmt"
	"strings"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// VendorID is the PCI vendor of all Enflame cards.
const VendorID = 0x1e36

// Device is one card.
type Device struct {
	// Minor is the number in the card's name: 3 for /dev/gcu3. It is the card's id on its host.
	Minor int
	// UUID starts with "GCU-". Whether it follows the card to another host depends on the back end: see OwnUUID.
	UUID         string
	SerialNumber string
	// Model is the name as in labels ("S60"); Product and Family ("scorpio", "SCORPIO") are empty
	// where not known.
	Model, Product, Family string
	VendorID, DeviceID     uint16
	// MemoryMiB is 0 when unknown.
	MemoryMiB  int64
	PCIAddress topology.Address
	// Bridges are the PCI bridges above the card, nearest first, the root complex last.
	Bridges []string
	// NUMA is the card's NUMA node, -1 when unknown.
	NUMA int
	// Node is the device node inside a container and on the host, with the numbers it has to have.
	Node            string
	Major, DevMinor uint32
	Health          Health
}

// Host is what a host says of itself as a whole. Unknown parts are empty.
type Host struct {
	// DriverVersion is the version of the loaded driver.
	DriverVersion string
	// Product is the name of the machine in its firmware, for example "NF5468M5".
	Product string
}

// addressUUID starts the uuids that are made of PCI addresses.
const addressUUID = contract.UUIDPrefix + "PCI-"

// AddressUUID returns the uuid that a card is given which has not told its own: it says where the card is, and so it
// stays the same when another card is put there.
func AddressUUID(at topology.Address) string { return addressUUID + at.String() }

// OwnUUID says whether a uuid is what a card tells of itself: it is neither missing nor made of the card's address.
func OwnUUID(uuid string) bool { return uuid != "" && !strings.HasPrefix(uuid, addressUUID) }

// NodePath returns the path of the device node of a card.
func NodePath(minor int) string { return fmt.Sprintf("/dev/gcu%d", minor) }

// HealthState says whether a card works. The numbers are those of the metric enflame_gcu_health.
type HealthState int

const (
	// HealthUnknown means that nobody has told. It is not good enough to sell the card.
	HealthUnknown HealthState = iota
	// Unhealthy means that a fault was seen.
	Unhealthy
	// Healthy means that the card was asked and is well.
	Healthy
)

// Health is the state of a card and, unless it is healthy, the cause.
type Health struct {
	State HealthState
	Cause string
}

// Problem returns why the card cannot be used, in words, and "" for a healthy card. It is the health
// text of a node's announcement.
func (h Health) Problem() string {
	switch {
	case h.State == Healthy:
		return ""
	case h.Cause != "":
		return h.Cause
	case h.State == Unhealthy:
		return "unhealthy"
	}
	return "health unknown"
}

// UnknownHealth returns the health of a card that could not be asked, with the cause in a few steady
// words: a cause that changes with every try would look like a change.
func UnknownHealth(err error) Health {
	switch {
	case errors.Is(err, ErrTimeout):
		return Health{Cause: "does not answer"}
	case errors.Is(err, ErrDeviceLost):
		return Health{Cause: "lost"}
	case errors.Is(err, ErrDriverNotLoaded):
		return Health{Cause: "driver not loaded"}
	case errors.Is(err, ErrNotSupported):
		return Health{Cause: "health not supported"}
	}
	return Health{Cause: "cannot be asked"}
}

// TopologyCards returns the places of the devices, for topology.New.
func TopologyCards(devices []Device) []topology.Card {
	cards := make([]topology.Card, 0, len(devices))
	for _, d := range devices {
		cards = append(cards, topology.Card{Minor: d.Minor, Bridges: d.Bridges, NUMA: d.NUMA})
	}
	return cards
}

// Entry returns the name of the device in errors: its PCI address.
func (d Device) Entry() string { return d.PCIAddress.String() }
