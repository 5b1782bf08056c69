package sim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/topology"
)

// Machine is a made-up host. Its fields may be changed; Preset fills them.
type Machine struct {
	// Name is the name of the preset.
	Name string
	// Product is the name of the machine in its firmware.
	Product string
	// DriverVersion is the version of the driver; empty is a host whose driver is not loaded.
	DriverVersion string
	// Cards are the cards, in any order.
	Cards []eflib.Device

	// broken cards are there but cannot be read.
	broken map[int]bool
	// state is what faults changed about cards.
	state map[int]cardState
}

var (
	_ eflib.Inventory = (*Machine)(nil)
	_ eflib.Telemetry = (*Machine)(nil)
)

// ErrBroken is what an inventory says about a card that Break broke.
var ErrBroken = errors.New("card does not answer")

// Clone returns a copy that shares nothing with m.
func (m Machine) Clone() Machine {
	m.Cards = cloneDevices(m.Cards)
	m.broken = maps.Clone(m.broken)
	m.state = maps.Clone(m.state)
	return m
}

// ForNode returns a copy whose cards have the uuids and serial numbers of that node.
func (m Machine) ForNode(nodeName string) Machine {
	m = m.Clone()
	for i := range m.Cards {
		c := &m.Cards[i]
		sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", nodeName, c.Minor))
		// The minor at the end rules out that two cards of a node collide.
		c.SerialNumber = fmt.Sprintf("S%X%02X", sum[:5], c.Minor)
		c.UUID = "GCU-" + c.SerialNumber
	}
	return m
}

// Devices returns the cards, without the broken ones.
func (m *Machine) Devices(ctx context.Context) ([]eflib.Device, error) {
	if err := eflib.ContextError(ctx); err != nil {
		return nil, err
	}
	if m.DriverVersion == "" {
		return nil, eflib.ErrDriverNotLoaded
	}
	var errs []error
	devices := make([]eflib.Device, 0, len(m.Cards))
	for _, c := range m.sorted() {
		if m.broken[c.Minor] {
			errs = append(errs, &eflib.DeviceError{Entry: c.PCIAddress.String(), Err: ErrBroken})
			continue
		}
		if m.state[c.Minor].hangs {
			c.Health = eflib.Health{Cause: hangCause}
		}
		devices = append(devices, c)
	}
	return devices, errors.Join(errs...)
}

// Host returns what the host says of itself.
func (m *Machine) Host(context.Context) (eflib.Host, error) {
	if m.DriverVersion == "" {
		return eflib.Host{}, eflib.ErrDriverNotLoaded
	}
	return eflib.Host{DriverVersion: m.DriverVersion, Product: m.Product}, nil
}

// Topology returns the tree of the machine's cards.
func (m Machine) Topology() (*topology.Tree, error) {
	return topology.New(eflib.TopologyCards(m.Cards))
}

// SetHealth makes a card unhealthy for a cause, or healthy with an empty one. It reports whether the
// machine has the card.
func (m *Machine) SetHealth(minor int, cause string) bool {
	health := eflib.Health{State: eflib.Healthy}
	if cause != "" {
		health = eflib.Health{State: eflib.Unhealthy, Cause: cause}
	}
	i := m.index(minor)
	if i >= 0 {
		m.Cards[i].Health = health
	}
	return i >= 0
}

// Remove takes a card out of the machine and reports whether it was there. To put it back, append it to
// Cards again.
func (m *Machine) Remove(minor int) bool {
	i := m.index(minor)
	if i >= 0 {
		m.Cards = slices.Delete(m.Cards, i, i+1)
		delete(m.broken, minor)
		delete(m.state, minor)
	}
	return i >= 0
}

// Break leaves a card in the machine and makes it unreadable. It reports whether the machine has the
// card.
func (m *Machine) Break(minor int) bool {
	if m.index(minor) < 0 {
		return false
	}
	if m.broken == nil {
		m.broken = map[int]bool{}
	}
	m.broken[minor] = true
	return true
}

func (m *Machine) index(minor int) int {
	return slices.IndexFunc(m.Cards, func(d eflib.Device) bool { return d.Minor == minor })
}

// sorted returns a copy of the cards, sorted by minor.
func (m *Machine) sorted() []eflib.Device {
	cards := cloneDevices(m.Cards)
	slices.SortStableFunc(cards, func(a, b eflib.Device) int { return a.Minor - b.Minor })
	return cards
}

func cloneDevices(devices []eflib.Device) []eflib.Device {
	devices = slices.Clone(devices)
	for i := range devices {
		devices[i].Bridges = slices.Clone(devices[i].Bridges)
	}
	return devices
}
