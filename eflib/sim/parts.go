package sim

import (
	"errors"
	"slices"

	"github.com/topscloud/topscloud/eflib"
)

// parts are the lists of things that a card has because of faults. A list is never changed in place: copies of a
// machine share it.
type parts struct {
	processes []eflib.Process
	ports     []port
	records   []eflib.ErrorRecord
	vgcus     uint32
	traffic   eflib.Throughput
	flagged   bool
}

// port is a port of the interconnect; there is a card at its other end where wired is set.
type port struct {
	number, remote, remotePort uint32
	wired                      bool
}

// maxVGCUs bounds the parts of one card.
const maxVGCUs = 16

// The interconnect of simulated cards.
const (
	portGeneration = 4
	portWidth      = 16
)

// give understands the faults that give a card something.
func (p *parts) give(f Fault) error {
	switch f.Kind {
	case "process":
		var pid, mib uint32
		if err := f.numbers(2, 1<<30, &pid, &mib); err != nil {
			return err
		}
		if pid == 0 {
			return errors.New("process 0: want 1 or more")
		}
		p.processes = append(slices.Clip(p.processes), eflib.Process{PID: int(pid), DeviceBytes: int64(mib) << 20})
		return nil
	case "port":
		var x port
		if err := f.numbers(1, 127, &x.number, &x.remote, &x.remotePort); err != nil {
			return err
		}
		if x.wired = len(f.Args) > 1; x.wired && len(f.Args) != 3 {
			return errors.New("want the port alone, or the card and port at its other end as well")
		}
		others := slices.DeleteFunc(slices.Clone(p.ports), func(o port) bool { return o.number == x.number })
		p.ports = append(others, x)
		return nil
	case "error-record":
		var id, kind uint32
		if err := f.numbers(2, 1<<30, &id, &kind); err != nil {
			return err
		}
		p.records = append(slices.Clip(p.records), eflib.ErrorRecord{ID: uint64(id), ResetType: kind})
		return nil
	case "vgcu":
		if err := f.numbers(1, maxVGCUs, &p.vgcus); err != nil {
			return err
		}
		if p.vgcus == 0 {
			return errors.New("0 vGCUs: want 1 or more")
		}
		return nil
	case "pcie":
		var transmit, receive, transmitNAK, receiveNAK uint32
		err := f.numbers(4, 1<<30, &transmit, &receive, &transmitNAK, &receiveNAK)
		p.traffic = eflib.Throughput{
			Transmit: float64(transmit), Receive: float64(receive), TransmitNAK: uint64(transmitNAK), ReceiveNAK: uint64(receiveNAK),
		}
		return err
	case "rma":
		p.flagged = true
		return f.numbers(0, 0)
	}
	return errors.New("no such fault")
}

// heldMiB is the memory of the card's processes.
func (p *parts) heldMiB() int64 {
	var sum int64
	for _, one := range p.processes {
		sum += one.DeviceBytes >> 20
	}
	return sum
}

// fill puts the parts of card c into its sample.
func (p *parts) fill(m *Machine, c eflib.Device, s *eflib.Sample) {
	ports := make([]eflib.Port, 0, len(p.ports))
	for _, x := range p.ports {
		out := eflib.Port{Number: int(x.number), Link: eflib.Known(eflib.Link{MaxGeneration: portGeneration, MaxWidth: portWidth})}
		if i := m.index(int(x.remote)); x.wired && i >= 0 {
			out.Connected, out.Remote, out.RemotePort = true, m.Cards[i].PCIAddress, int(x.remotePort)
			out.Link = eflib.Known(eflib.Link{Generation: portGeneration, MaxGeneration: portGeneration, Width: portWidth, MaxWidth: portWidth})
		}
		ports = append(ports, out)
	}
	vgcus := make([]eflib.VirtualDevice, p.vgcus)
	for i := range vgcus {
		each := uint64(c.MemoryMiB) / uint64(p.vgcus) << 20
		vgcus[i] = eflib.VirtualDevice{Number: i, Memory: eflib.MemoryOf(each, 0), Usage: eflib.Percent(0)}
	}
	s.Processes, s.Ports, s.VirtualDevices = eflib.Known(append([]eflib.Process{}, p.processes...)), eflib.Known(ports), eflib.Known(vgcus)
	s.ErrorRecords = eflib.Known(append([]eflib.ErrorRecord{}, p.records...))
	s.PCIeThroughput = eflib.ThroughputOf(p.traffic)
}
