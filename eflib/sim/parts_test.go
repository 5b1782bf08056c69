package sim_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
)

// What a card has besides itself, by faults, and that another copy of the machine does not get it.
func TestParts(t *testing.T) {
	t.Parallel()
	m := preset(t, "s60x8")
	before := m.Clone()
	faults, err := sim.ParseFaults(`process 0 4711 1024
process 0 4712 2048
port 0 1 3 2
port 0 5
vgcu 0 4
error-record 0 7 2
pcie 0 100 200 3 4
rma 0
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		if err := f.Apply(&m); err != nil {
			t.Fatal(err)
		}
	}
	s, err := m.Sample(t.Context(), m.Cards[0], eflib.AllFields)
	if err != nil {
		t.Fatal(err)
	}
	full := eflib.Link{Generation: 4, MaxGeneration: 4, Width: 16, MaxWidth: 16}
	share := eflib.MemoryOf(42976/4<<20, 0)
	idle := eflib.Percent(0)
	want := eflib.Sample{
		Memory:    eflib.MemoryOf(42976<<20, 3072<<20),
		Processes: eflib.Known([]eflib.Process{{PID: 4711, DeviceBytes: 1 << 30}, {PID: 4712, DeviceBytes: 2 << 30}}),
		Ports: eflib.Known([]eflib.Port{
			{Number: 1, Connected: true, Remote: m.Cards[3].PCIAddress, RemotePort: 2, Link: eflib.Known(full)},
			{Number: 5, Link: eflib.Known(eflib.Link{MaxGeneration: 4, MaxWidth: 16})},
		}),
		VirtualDevices: eflib.Known([]eflib.VirtualDevice{
			{Number: 0, Memory: share, Usage: idle}, {Number: 1, Memory: share, Usage: idle},
			{Number: 2, Memory: share, Usage: idle}, {Number: 3, Memory: share, Usage: idle},
		}),
		ErrorRecords:   eflib.Known([]eflib.ErrorRecord{{ID: 7, ResetType: 2}}),
		PCIeThroughput: eflib.Known(eflib.Throughput{Transmit: 100, Receive: 200, TransmitNAK: 3, ReceiveNAK: 4}),
		RMA:            eflib.Known(eflib.RMA{Flagged: true}),
		Virtualization: eflib.Known(eflib.VirtVGCU),
	}
	got := eflib.Sample{
		Memory: s.Memory, Processes: s.Processes, Ports: s.Ports, VirtualDevices: s.VirtualDevices, ErrorRecords: s.ErrorRecords,
		PCIeThroughput: s.PCIeThroughput, RMA: s.RMA, Virtualization: s.Virtualization,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("card 0 (-want +got):\n%s", diff)
	}
	old, err := before.Sample(t.Context(), before.Cards[0], eflib.AllFields)
	if list, known := old.Processes.Value(); err != nil || !known || len(list) != 0 {
		t.Errorf("the copy from before has processes %v, %v", list, err)
	}
	for _, line := range []string{"process 0 0 1", "process 0 5", "port 0 1 2", "port 0", "vgcu 0 0", "vgcu 0 17", "error-record 0 1", "pcie 0 1 2 3", "rma 0 1"} {
		if _, err := sim.ParseFaults(line); err == nil {
			t.Errorf("%q was understood", line)
		}
	}
}
