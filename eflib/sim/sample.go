package sim

import (
	"context"
	"time"

	"github.com/topscloud/topscloud/eflib"
)

// cardState is what differs from a card that is idle and well.
type cardState struct {
	hangs          bool
	usedMiB        int64
	celsius        float64 // 0 is the usual temperature
	doubleBit      uint32
	virtualization eflib.Virtualization
	link           eflib.Link // zero is the full link
	parts
}

// hangCause is the cause of unknown health of a card that hangs.
const hangCause = "does not answer"

// answerTime is how long a call waits for a card that hangs, where its context sets no limit.
const answerTime = 5 * time.Second

// Sample reads a card. A card that hangs lets it wait until ctx ends.
func (m *Machine) Sample(ctx context.Context, device eflib.Device, want eflib.Field) (eflib.Sample, error) {
	s := eflib.Sample{Minor: device.Minor, Time: time.Now()}
	err := m.ask(ctx, device)
	if err == nil {
		m.fill(&s, m.Cards[m.index(device.Minor)], want)
		s.Name(device.Entry())
		return s, nil
	}
	s.Fail(want, device.Entry(), err)
	return s, &eflib.DeviceError{Entry: device.Entry(), Err: err}
}

// ask finds out whether a card answers.
func (m *Machine) ask(ctx context.Context, device eflib.Device) error {
	i := m.index(device.Minor)
	switch {
	case ctx.Err() != nil:
		return eflib.ContextError(ctx)
	case m.DriverVersion == "":
		return eflib.ErrDriverNotLoaded
	case i < 0 || m.Cards[i].PCIAddress != device.PCIAddress:
		return eflib.ErrDeviceLost
	case m.broken[device.Minor]:
		return ErrBroken
	case !m.state[device.Minor].hangs:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	<-ctx.Done()
	return eflib.ContextError(ctx)
}

// fill sets the wanted readings of a card that answers.
func (m *Machine) fill(s *eflib.Sample, c eflib.Device, want eflib.Field) {
	state, facts := m.state[c.Minor], factsOf(c.Model)
	all := eflib.Sample{
		Identity: eflib.Known(eflib.Identity{
			Name: "Enflame " + c.Model, UUID: c.UUID, SerialNumber: c.SerialNumber, Firmware: "1.0.0",
		}),
		Health:         eflib.Known(c.Health),
		PowerWatts:     eflib.Watts(float64(90 + c.Minor)),
		PowerCap:       eflib.Watts(facts.watts),
		ASICCelsius:    eflib.Celsius(float64(40 + c.Minor)),
		HBMCelsius:     eflib.Celsius(float64(42 + c.Minor)),
		BoardCelsius:   eflib.Celsius(float64(38 + c.Minor)),
		CoreMHz:        eflib.Megahertz(1300),
		HBMMHz:         eflib.Megahertz(1600),
		Usage:          eflib.Percent(0),
		SIPUsage:       eflib.Percent(0),
		ClusterUsage:   eflib.Unknown[[]eflib.Reading[float64]](eflib.ErrNotSupported),
		PGUsage:        eflib.Unknown[[]eflib.Reading[float64]](eflib.ErrNotSupported),
		PCIeLink:       eflib.Known(m.link(c)),
		ECC:            eflib.ECCOf(eflib.ECC{Enabled: facts.ecc, Pending: facts.ecc, DoubleBit: state.doubleBit}),
		RMA:            eflib.RMAOf(eflib.RMA{Flagged: state.flagged, DoubleBit: state.doubleBit}),
		PowerMode:      eflib.Known(eflib.PowerSleep),
		Virtualization: eflib.Known(state.virtualization),
	}
	state.fill(m, c, &all)
	// More than there is cannot be in use, whatever processes are made up.
	used := min(max(state.usedMiB, state.heldMiB()), c.MemoryMiB)
	all.Memory = eflib.MemoryOf(uint64(c.MemoryMiB)<<20, uint64(used)<<20)
	if used > 0 {
		all.PowerMode = eflib.Known(eflib.PowerActive)
	}
	if state.vgcus > 0 {
		all.Virtualization = eflib.Known(eflib.VirtVGCU)
	}
	if state.celsius > 0 {
		all.ASICCelsius = eflib.Celsius(state.celsius)
	}
	if facts.clusters > 0 {
		usages := make([]eflib.Reading[float64], facts.clusters)
		for i := range usages {
			usages[i] = eflib.Percent(0)
		}
		all.ClusterUsage = eflib.Known(usages)
	}
	s.Take(all, want)
}

// link returns the PCIe link of a card.
func (m *Machine) link(c eflib.Device) eflib.Link {
	full := factsOf(c.Model).generation
	if link := m.state[c.Minor].link; link.Width > 0 {
		return link
	}
	return eflib.Link{Generation: full, MaxGeneration: full, Width: 16, MaxWidth: 16}
}

// facts are what the figures of a model hang on.
type facts struct {
	watts                float64
	generation, clusters int
	ecc                  bool
}

func factsOf(model string) facts {
	switch model {
	case "T10":
		return facts{watts: 225, generation: 4, clusters: 4}
	case "S60", "L300":
		return facts{watts: 300, generation: 5, ecc: true}
	}
	return facts{watts: 300, generation: 4}
}

// Hangs says whether no call about a card returns.
func (m Machine) Hangs(minor int) bool { return m.state[minor].hangs }

// Broken says whether a card is there and cannot be read.
func (m Machine) Broken(minor int) bool { return m.broken[minor] }
