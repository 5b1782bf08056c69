// Package efsmitest prints what efsmi would print about a made-up machine.
package efsmitest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
)

// Tool is a made-up efsmi. Its Run is an efsmi.Runner.
type Tool struct {
	mu      sync.Mutex // guards both
	machine sim.Machine
	runs    int
}

// Show makes the tool print about a machine.
func (t *Tool) Show(m sim.Machine) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.machine = m.Clone()
}

// Runs returns how often the tool was run.
func (t *Tool) Runs() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.runs
}

// Run prints -q for any arguments. A card that hangs lets the whole tool hang, as it is one program.
func (t *Tool) Run(ctx context.Context, _ ...string) ([]byte, error) {
	t.mu.Lock()
	t.runs++
	m := t.machine.Clone()
	t.mu.Unlock()
	if m.DriverVersion == "" {
		return nil, errors.New("exit status 1")
	}
	var b strings.Builder
	for index, card := range m.Cards {
		if m.Hangs(card.Minor) {
			<-ctx.Done()
			return nil, eflib.ContextError(ctx)
		}
		if m.Broken(card.Minor) {
			fmt.Fprintf(&b, "DEV ID %d\n", index)
			continue
		}
		s, err := m.Sample(ctx, card, eflib.AllFields)
		if err != nil {
			return nil, err
		}
		b.WriteString(Query(index, m.DriverVersion, card, s))
	}
	return []byte(b.String()), nil
}

// Query returns one card as -q prints it.
func Query(index int, driver string, card eflib.Device, s eflib.Sample) string {
	id, _ := s.Identity.Value()
	health, _ := s.Health.Value()
	memory, _ := s.Memory.Value()
	link, _ := s.PCIeLink.Value()
	rma, _ := s.RMA.Value()
	mode, _ := s.PowerMode.Value()
	level := map[eflib.PowerMode]string{eflib.PowerActive: "Active", eflib.PowerSuspend: "Suspend", eflib.PowerSleep: "Sleep"}[mode]
	word := func(b bool) string { return strings.ToUpper(fmt.Sprint(b)[:1]) + fmt.Sprint(b)[1:] }
	var b strings.Builder
	group := func(title string, pairs ...any) {
		fmt.Fprintf(&b, "    %s\n", title)
		for i := 0; i < len(pairs); i += 2 {
			fmt.Fprintf(&b, "        %-24s: %v\n", pairs[i], pairs[i+1])
		}
	}
	a := card.PCIAddress
	fmt.Fprintf(&b, "DEV ID %d\n", index)
	group("Driver Info", "Ver", driver)
	group("Device Info", "Dev Name", id.Name, "Dev UUID", strings.TrimPrefix(id.UUID, "GCU-"), "Dev SN", id.SerialNumber,
		"Health", word(health.State == eflib.Healthy))
	group("PCIe Info", "Vendor ID", fmt.Sprintf("%04x", card.VendorID), "Device ID", fmt.Sprintf("%04x", card.DeviceID),
		"Domain", fmt.Sprintf("%04x", a.Domain), "Bus", fmt.Sprintf("%02x", a.Bus), "Dev", fmt.Sprintf("%02x", a.Device), "Func", a.Function)
	group("Link Info", "Max Link Speed", fmt.Sprint("Gen", link.MaxGeneration), "Max Link Width", fmt.Sprint("X", link.MaxWidth),
		"Cur Link Speed", fmt.Sprint("Gen", link.Generation), "Cur Link Width", fmt.Sprint("X", link.Width),
		"Tx Throughput", "0 MiB/s", "Rx Throughput", "0 MiB/s")
	group("Clock Info", "Mem CLK", fmt.Sprint(s.HBMMHz, " MHz"))
	group("Power Info", "Power Capa", fmt.Sprint(s.PowerCap, " W"), "Cur Power", fmt.Sprint(s.PowerWatts, " W"), "Dpm Level", level)
	group("Device Mem Info", "Total Size", fmt.Sprint(memory.TotalBytes>>20, " MiB"), "Used Size", fmt.Sprint(memory.UsedBytes>>20, " MiB"))
	group("Temperature Info", "GCU Temp", fmt.Sprint(s.ASICCelsius, " ℃"))
	group("Device Usage Info", "GCU Usage", fmt.Sprint(s.Usage, " %"))
	group("RMA Info", "Flags", word(rma.Flagged), "Total DBE", rma.DoubleBit)
	return b.String()
}
