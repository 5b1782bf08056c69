package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// DevicesVersion is the version of NodeDevices this release writes.
const DevicesVersion = "v1"

// MaxCards is the largest number of cards one host can hold (the vendor library's limit). Minor
// numbers are below it.
const MaxCards = 128

// DefaultSliceCount is the number of slices of a card where nothing else is set.
const DefaultSliceCount = 6

// NodeDevices is the value of the node annotation DevicesKey: what the node's agent saw on the host.
// Devices are sorted by minor.
type NodeDevices struct {
	Version string `json:"version"`
	// MemoryUnitMiB is the size of one gcu-memory unit on this node (1024 for 1 GiB, 102 for 0.1 GiB).
	MemoryUnitMiB int64 `json:"memoryUnitMiB"`
	// SliceCount is the number of shared-gcu slices of one card.
	SliceCount int64        `json:"sliceCount"`
	Devices    []NodeDevice `json:"devices"`
}

// NodeDevice is one card of a node.
type NodeDevice struct {
	Minor     int    `json:"minor"`
	UUID      string `json:"uuid"`
	Model     string `json:"model"`
	MemoryMiB int64  `json:"memoryMiB"`
	PCIBusID  string `json:"pciBusID"`
	// Bridges are the PCI bridges above the card, nearest first; the last entry is the root complex
	// ("pci0000:0c"). Empty when the host does not tell.
	Bridges []string `json:"bridges,omitempty"`
	// NUMA is the card's NUMA node, -1 when unknown.
	NUMA int `json:"numa"`
	// Health is empty for a healthy card, else the cause in words.
	Health string `json:"health,omitempty"`
}

// EncodeDevices returns the canonical text of d: version set, cards sorted by minor. It refuses a
// value that DecodeDevices would refuse.
func EncodeDevices(d NodeDevices) (string, error) {
	d.Version = DevicesVersion
	d.Devices = slices.Clone(d.Devices)
	if d.Devices == nil {
		d.Devices = []NodeDevice{}
	}
	slices.SortFunc(d.Devices, func(a, b NodeDevice) int { return a.Minor - b.Minor })
	if err := d.validate(); err != nil {
		return "", err
	}
	b, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("encode node devices: %w", err)
	}
	return string(b), nil
}

// DecodeDevices reads the annotation. Any error means that nothing of the text may be used.
func DecodeDevices(text string) (*NodeDevices, error) {
	var d NodeDevices
	if err := decodeVersioned(text, DevicesVersion, &d); err != nil {
		return nil, err
	}
	if err := d.validate(); err != nil {
		return nil, err
	}
	return &d, nil
}

func (d *NodeDevices) validate() error {
	if d.MemoryUnitMiB < 1 {
		return fmt.Errorf("memoryUnitMiB %d: want at least 1", d.MemoryUnitMiB)
	}
	if d.SliceCount < 1 {
		return fmt.Errorf("sliceCount %d: want at least 1", d.SliceCount)
	}
	last := -1
	uuids := make(map[string]int, len(d.Devices))
	for _, dev := range d.Devices {
		switch {
		case dev.Minor < 0 || dev.Minor >= MaxCards:
			return fmt.Errorf("minor %d: want 0 to %d", dev.Minor, MaxCards-1)
		case dev.Minor <= last:
			return fmt.Errorf("minor %d: cards are not sorted by minor, or one stands twice", dev.Minor)
		case dev.UUID == "":
			return fmt.Errorf("minor %d: no uuid", dev.Minor)
		case dev.MemoryMiB < 1 || dev.MemoryMiB > maxCardMiB:
			return fmt.Errorf("minor %d: memoryMiB %d: want 1 to %d", dev.Minor, dev.MemoryMiB, int64(maxCardMiB))
		}
		if other, twice := uuids[dev.UUID]; twice {
			return fmt.Errorf("minor %d: uuid %s is also that of minor %d", dev.Minor, dev.UUID, other)
		}
		uuids[dev.UUID] = dev.Minor
		last = dev.Minor
	}
	return nil
}

// maxCardMiB bounds a card's memory (1 PiB) so that sums over a node stay far from overflow.
const maxCardMiB = 1 << 30

// NormalUUID returns the uuid with its prefix, for comparison: users may write it with or without.
func NormalUUID(uuid string) string {
	uuid = strings.TrimSpace(uuid)
	if uuid == "" || strings.HasPrefix(uuid, UUIDPrefix) {
		return uuid
	}
	return UUIDPrefix + uuid
}
