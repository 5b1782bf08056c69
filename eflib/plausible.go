package eflib

import (
	"fmt"
	"math"
)

// The functions of this file turn raw numbers into readings and refuse what cannot be true. A driver
// that has nothing to say often says 4294967295, -1 or NaN, and none of these may become a value.

// The most a number of its kind can be, far above what any card has.
const (
	maxWatts     = 5000
	maxCelsius   = 200
	maxMHz       = 20000
	maxMemory    = 16 << 40
	maxPCIe      = 7
	maxCounter   = math.MaxUint32 - 1
	maxBandwidth = 1 << 40
)

// Percent returns the reading of a share of 0 to 100.
func Percent(v float64) Reading[float64] { return between(v, 0, 100, "%") }

// Watts returns the reading of an electric power.
func Watts(v float64) Reading[float64] { return between(v, 0, maxWatts, "W") }

// Celsius returns the reading of a temperature. Below zero is a driver's way to say none.
func Celsius(v float64) Reading[float64] { return between(v, 0, maxCelsius, "°C") }

// Megahertz returns the reading of a clock.
func Megahertz(v float64) Reading[float64] { return between(v, 0, maxMHz, "MHz") }

func between(v, low, high float64, unit string) Reading[float64] {
	if !(v >= low && v <= high) { // so that NaN is refused too
		return Unknown[float64](fmt.Errorf("%w: %v %s", ErrImplausible, v, unit))
	}
	return Known(v)
}

// MemoryOf returns the reading of an amount of memory and the part in use, both in bytes.
func MemoryOf(total, used uint64) Reading[Memory] {
	if total < 1<<20 || total > maxMemory || used > total {
		return Unknown[Memory](fmt.Errorf("%w: %d of %d bytes used", ErrImplausible, used, total))
	}
	return Known(Memory{TotalBytes: int64(total), UsedBytes: int64(used)})
}

// PCIeLinkOf returns the reading of a PCIe link. A link can be narrower or slower than it could be,
// never wider or faster.
func PCIeLinkOf(generation, maxGeneration, width, maxWidth uint32) Reading[Link] {
	lanes := func(n uint32) bool { return n == 12 || n >= 1 && n <= 32 && n&(n-1) == 0 }
	if generation < 1 || generation > maxGeneration || maxGeneration > maxPCIe || width > maxWidth || !lanes(width) || !lanes(maxWidth) {
		return Unknown[Link](fmt.Errorf("%w: PCIe generation %d of %d, %d of %d lanes",
			ErrImplausible, generation, maxGeneration, width, maxWidth))
	}
	return Known(Link{Generation: int(generation), MaxGeneration: int(maxGeneration), Width: int(width), MaxWidth: int(maxWidth)})
}

// ThroughputOf returns the reading of what goes over a link.
func ThroughputOf(t Throughput) Reading[Throughput] {
	for _, v := range []float64{t.Transmit, t.Receive} {
		if !(v >= 0 && v <= maxBandwidth) {
			return Unknown[Throughput](fmt.Errorf("%w: throughput %v", ErrImplausible, v))
		}
	}
	if t.TransmitNAK == math.MaxUint64 || t.ReceiveNAK == math.MaxUint64 || t.TransmitNAK == math.MaxUint32 || t.ReceiveNAK == math.MaxUint32 {
		return Unknown[Throughput](fmt.Errorf("%w: NAK counters %d, %d", ErrImplausible, t.TransmitNAK, t.ReceiveNAK))
	}
	return Known(t)
}

// ECCOf returns the reading of the state of error correction.
func ECCOf(e ECC) Reading[ECC] {
	return of(e, counters(e.SingleBit, e.DoubleBit))
}

// RMAOf returns the reading of the return state.
func RMAOf(r RMA) Reading[RMA] { return of(r, counters(r.DoubleBit)) }

func counters(list ...uint32) error {
	for _, n := range list {
		if n > maxCounter {
			return fmt.Errorf("%w: counter %d", ErrImplausible, n)
		}
	}
	return nil
}

// PowerModeOf returns the reading of a power mode by its number.
func PowerModeOf(n uint32) Reading[PowerMode] {
	switch m := PowerMode(n); m {
	case PowerActive, PowerSuspend, PowerSleep:
		return Known(m)
	}
	return Unknown[PowerMode](fmt.Errorf("%w: power mode %d", ErrImplausible, n))
}

// VirtualizationOf returns the reading of a virtualisation mode by its number.
func VirtualizationOf(n uint32) Reading[Virtualization] {
	if n > uint32(VirtSRIOVVF) {
		return Unknown[Virtualization](fmt.Errorf("%w: virtualisation mode %d", ErrImplausible, n))
	}
	return Known(Virtualization(n))
}
