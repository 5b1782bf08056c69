package libefml

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/topology"
)

func readMemory(ctx context.Context, q question, s *eflib.Sample) {
	m, err := card[memory](ctx, q.l, q.index, "EfmlGetDevMem")
	s.Memory = reading(m, err, convertMemory)
}

func convertMemory(m memory) eflib.Reading[eflib.Memory] {
	return eflib.MemoryOf(m.TotalBytes, uint64(m.UsedMiB)<<20)
}

func readPower(ctx context.Context, q question, s *eflib.Sample) {
	p, err := card[power](ctx, q.l, q.index, "EfmlGetDevPwr")
	s.PowerWatts = reading(float64(p.Current), err, eflib.Watts)
	s.PowerCap = reading(float64(p.Capability), err, eflib.Watts)
}

func readTemperature(ctx context.Context, q question, s *eflib.Sample) {
	t, err := card[temperature](ctx, q.l, q.index, "EfmlGetDevTempV2")
	s.ASICCelsius = reading(float64(t.ASIC), err, eflib.Celsius)
	s.HBMCelsius = reading(float64(t.Memory), err, eflib.Celsius)
	s.BoardCelsius = reading(float64(t.Board), err, eflib.Celsius)
}

func readClock(ctx context.Context, q question, s *eflib.Sample) {
	c, err := card[clock](ctx, q.l, q.index, "EfmlGetDevClk")
	s.CoreMHz = reading(float64(c.Core), err, eflib.Megahertz)
	s.HBMMHz = reading(float64(c.HBM), err, eflib.Megahertz)
}

// readUsage prefers the call that does not sample.
func readUsage(ctx context.Context, q question, s *eflib.Sample) {
	u, err := card[float32](ctx, q.l, q.index, "EfmlGetDevDtuUsageAsync")
	if errors.Is(err, eflib.ErrNotSupported) {
		u, err = card[float32](ctx, q.l, q.index, "EfmlGetDevDtuUsage")
	}
	s.Usage = reading(float64(u), err, eflib.Percent)
}

func readSIPUsage(ctx context.Context, q question, s *eflib.Sample) {
	u, err := card[float32](ctx, q.l, q.index, "EfmlGetDevSipUsage")
	s.SIPUsage = reading(float64(u), err, eflib.Percent)
}

// maxParts is more clusters, processor groups, ports or virtual devices than a card has.
const maxParts = 64

func readClusterUsage(ctx context.Context, q question, s *eflib.Sample) {
	s.ClusterUsage = usages(ctx, q, "EfmlGetClusterCount", "EfmlGetDevClusterUsage")
}

func readPGUsage(ctx context.Context, q question, s *eflib.Sample) {
	s.PGUsage = usages(ctx, q, "EfmlGetPGCount", "EfmlGetDevPGUsage")
}

func usages(ctx context.Context, q question, counter, function string) eflib.Reading[[]eflib.Reading[float64]] {
	n, err := count(ctx, q.l, q.index, counter, maxParts)
	if err != nil {
		return eflib.Unknown[[]eflib.Reading[float64]](err)
	}
	list := make([]eflib.Reading[float64], n)
	for i := range list {
		u, err := card[float32](ctx, q.l, q.index, function, uint32(i))
		list[i] = reading(float64(u), err, eflib.Percent)
	}
	return eflib.Known(list)
}

func readPCIeLink(ctx context.Context, q question, s *eflib.Sample) {
	k, err := card[link](ctx, q.l, q.index, "EfmlGetPcieLinkInfo")
	s.PCIeLink = reading(k, err, func(k link) eflib.Reading[eflib.Link] {
		return eflib.PCIeLinkOf(k.Speed, k.MaxSpeed, k.Width, k.MaxWidth)
	})
}

func readThroughput(ctx context.Context, q question, s *eflib.Sample) {
	t, err := card[throughput](ctx, q.l, q.index, "EfmlGetPcieThroughput")
	s.PCIeThroughput = reading(t, err, func(t throughput) eflib.Reading[eflib.Throughput] {
		return eflib.ThroughputOf(eflib.Throughput{
			Transmit: float64(t.Transmit), Receive: float64(t.Receive), TransmitNAK: t.TransmitNAK, ReceiveNAK: t.ReceiveNAK,
		})
	})
}

func readECC(ctx context.Context, q question, s *eflib.Sample) {
	e, err := card[eccStatus](ctx, q.l, q.index, "EfmlGetDevEccStatus")
	s.ECC = reading(e, err, convertECC)
}

func convertECC(e eccStatus) eflib.Reading[eflib.ECC] {
	if _, err := truth(e.Enabled, e.Pending, e.BlacklistPending); err != nil {
		return eflib.Unknown[eflib.ECC](err)
	}
	return eflib.ECCOf(eflib.ECC{
		Enabled: e.Enabled == 1, Pending: e.Pending == 1, RetirementPending: e.BlacklistPending == 1,
		SingleBit: e.SingleBit, DoubleBit: e.DoubleBit,
	})
}

func readRMA(ctx context.Context, q question, s *eflib.Sample) {
	r, err := card[rmaDetails](ctx, q.l, q.index, "EfmlGetDevRmaDetails")
	s.RMA = reading(r, err, func(r rmaDetails) eflib.Reading[eflib.RMA] {
		supported, err := truth(r.Supported, r.Flagged)
		switch {
		case err != nil:
			return eflib.Unknown[eflib.RMA](err)
		case !supported:
			return eflib.Unknown[eflib.RMA](eflib.ErrNotSupported)
		}
		return eflib.RMAOf(eflib.RMA{Flagged: r.Flagged == 1, DoubleBit: r.DoubleBit})
	})
}

func readPowerMode(ctx context.Context, q question, s *eflib.Sample) {
	n, err := card[uint32](ctx, q.l, q.index, "EfmlGetPowerMode")
	s.PowerMode = reading(n, err, eflib.PowerModeOf)
}

func readVirtualization(ctx context.Context, q question, s *eflib.Sample) {
	n, err := card[uint32](ctx, q.l, q.index, "EfmlGetGcuVirtStatus")
	s.Virtualization = reading(n, err, eflib.VirtualizationOf)
}

func readProcesses(ctx context.Context, q question, s *eflib.Sample) {
	list, err := processes(ctx, q.l, q.index)
	s.Processes = reading(list, err, func(list []process) eflib.Reading[[]eflib.Process] {
		out := make([]eflib.Process, 0, len(list))
		for _, p := range list {
			if p.PID == 0 || p.PID > math.MaxInt32 || p.DeviceBytes > math.MaxInt64 || p.SystemBytes > math.MaxInt64 {
				return eflib.Unknown[[]eflib.Process](fmt.Errorf("%w: process %d", eflib.ErrImplausible, p.PID))
			}
			out = append(out, eflib.Process{PID: int(p.PID), DeviceBytes: int64(p.DeviceBytes), SystemBytes: int64(p.SystemBytes)})
		}
		return eflib.Known(out)
	})
}

func readPorts(ctx context.Context, q question, s *eflib.Sample) {
	supported, err := cardBool(ctx, q.l, q.index, "EfmlGetGcuLareIsSupported")
	n := 0
	if err == nil && supported {
		n, err = count(ctx, q.l, q.index, "EfmlGetGcuLarePortNum", maxParts)
	}
	if err != nil {
		s.Ports = eflib.Unknown[[]eflib.Port](err)
		return
	}
	ports := make([]eflib.Port, 0, n)
	for i := range uint32(n) {
		info, err := card[portInfo](ctx, q.l, q.index, "EfmlGetGcuLarePortInfo", i)
		if err == nil && (info.Connected > 1 || info.RemoteBus > 0xff || info.RemoteDev > 0x1f || info.RemoteFunc > 7) {
			err = fmt.Errorf("%w: interconnect port %d", eflib.ErrImplausible, i)
		}
		if err != nil {
			s.Ports = eflib.Unknown[[]eflib.Port](err)
			return
		}
		port := eflib.Port{Number: int(i), Connected: info.Connected == 1}
		if port.Connected {
			port.Remote = topology.Address{
				Domain: info.RemoteDomain, Bus: uint8(info.RemoteBus), Device: uint8(info.RemoteDev), Function: uint8(info.RemoteFunc),
			}
			port.RemotePort = int(info.RemotePort)
		}
		k, err := card[link](ctx, q.l, q.index, "EfmlGetGcuLareLinkInfo", i)
		port.Link = reading(k, err, convertPort)
		ports = append(ports, port)
	}
	s.Ports = eflib.Known(ports)
}

// convertPort does not know the speeds and widths of the interconnect; it refuses only the number that
// stands for none, and a link that is better than its best.
func convertPort(k link) eflib.Reading[eflib.Link] {
	if k.MaxSpeed == math.MaxUint32 || k.MaxWidth == math.MaxUint32 || k.Speed > k.MaxSpeed || k.Width > k.MaxWidth {
		return eflib.Unknown[eflib.Link](fmt.Errorf("%w: interconnect link %+v", eflib.ErrImplausible, k))
	}
	return eflib.Known(eflib.Link{Generation: int(k.Speed), MaxGeneration: int(k.MaxSpeed), Width: int(k.Width), MaxWidth: int(k.MaxWidth)})
}

// readVirtualDevices takes virtual devices to be numbered from 0. EfmlGetVdevList, which may say
// otherwise, is not called: what it writes is not published.
func readVirtualDevices(ctx context.Context, q question, s *eflib.Sample) {
	n, err := count(ctx, q.l, q.index, "EfmlGetVdevCount", maxParts)
	if err != nil {
		s.VirtualDevices = eflib.Unknown[[]eflib.VirtualDevice](err)
		return
	}
	list := make([]eflib.VirtualDevice, 0, n)
	for i := range uint32(n) {
		m, err := card[memory](ctx, q.l, q.index, "EfmlGetVdevMem", i)
		v := eflib.VirtualDevice{Number: int(i), Memory: reading(m, err, convertMemory)}
		u, err := card[float32](ctx, q.l, q.index, "EfmlGetVdevDtuUsage", i)
		v.Usage = reading(float64(u), err, eflib.Percent)
		list = append(list, v)
	}
	s.VirtualDevices = eflib.Known(list)
}

func readErrorRecords(ctx context.Context, q question, s *eflib.Sample) {
	list, err := errorRecords(ctx, q.l, q.index)
	s.ErrorRecords = reading(list, err, func(list []errorRecord) eflib.Reading[[]eflib.ErrorRecord] {
		out := make([]eflib.ErrorRecord, 0, len(list))
		for _, r := range list {
			out = append(out, eflib.ErrorRecord{ID: r.ID, ResetType: r.ResetType, Source: r.Source, Timestamp: r.Timestamp})
		}
		return eflib.Known(out)
	})
}
