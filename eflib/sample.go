package eflib

import (
	"time"

	"github.com/topscloud/topscloud/topology"
)

// Sample is what a card told at one time. Each reading stands or falls by itself.
type Sample struct {
	// Minor is that of the device that was asked.
	Minor int
	// Time is when the reading began.
	Time time.Time

	Identity     Reading[Identity]
	Health       Reading[Health]
	Memory       Reading[Memory]
	PowerWatts   Reading[float64]
	PowerCap     Reading[float64] // W
	ASICCelsius  Reading[float64]
	HBMCelsius   Reading[float64]
	BoardCelsius Reading[float64]
	CoreMHz      Reading[float64]
	HBMMHz       Reading[float64]
	// Usage is how busy the card is, SIPUsage how busy its processors are, in percent.
	Usage    Reading[float64]
	SIPUsage Reading[float64]
	// ClusterUsage and PGUsage have one reading per cluster or processor group, in their order.
	ClusterUsage   Reading[[]Reading[float64]]
	PGUsage        Reading[[]Reading[float64]]
	PCIeLink       Reading[Link]
	PCIeThroughput Reading[Throughput]
	ECC            Reading[ECC]
	RMA            Reading[RMA]
	PowerMode      Reading[PowerMode]
	Virtualization Reading[Virtualization]
	Processes      Reading[[]Process]
	// Ports are the ports of the card-to-card interconnect; none on a card that has none.
	Ports          Reading[[]Port]
	VirtualDevices Reading[[]VirtualDevice]
	ErrorRecords   Reading[[]ErrorRecord]
}

// Field is a set of readings to ask for.
type Field uint32

// The fields, each the readings of one or a few questions to the card.
const (
	FieldIdentity Field = 1 << iota
	FieldHealth
	FieldMemory
	FieldPower
	FieldTemperature
	FieldClock
	FieldUsage
	FieldSIPUsage
	FieldClusterUsage
	FieldPGUsage
	FieldPCIeLink
	FieldPCIeThroughput
	FieldECC
	FieldRMA
	FieldPowerMode
	FieldVirtualization
	FieldProcesses
	FieldPorts
	FieldVirtualDevices
	FieldErrorRecords

	fieldEnd
	// AllFields asks for everything.
	AllFields = fieldEnd - 1
)

// Has says whether all of some fields are in the set.
func (f Field) Has(some Field) bool { return f&some == some }

// Identity is what a card says of itself. Texts that it does not tell are empty.
type Identity struct {
	Name, UUID, SerialNumber, PartNumber, ManufacturedOn string
	SKU, Firmware, Architecture, Slot, CPUs              string
}

// Memory is the memory of a card. UsedBytes is never more than TotalBytes.
type Memory struct{ TotalBytes, UsedBytes int64 }

// Link is the state of a serial link and what it can be.
type Link struct{ Generation, MaxGeneration, Width, MaxWidth int }

// Throughput is what goes over the PCIe link. The unit of Transmit and Receive is the driver's:
// efsmi prints MiB/s, libefml's is not published.
type Throughput struct {
	Transmit, Receive       float64
	TransmitNAK, ReceiveNAK uint64
}

// ECC is the state of memory error correction. Errors are counted by the driver, from a point in time
// that it does not tell; the counters go down when it resets them.
type ECC struct {
	Enabled, Pending, RetirementPending bool
	SingleBit, DoubleBit                uint32
}

// RMA says whether a card is to be sent back.
type RMA struct {
	Flagged   bool
	DoubleBit uint32
}

// PowerMode is a power mode of a card, by the driver's number.
type PowerMode int

// The known power modes.
const (
	PowerActive  PowerMode = 1
	PowerSuspend PowerMode = 5
	PowerSleep   PowerMode = 7
)

// Virtualization is how a card is divided, by the driver's number.
type Virtualization int

// The known ways. VirtHost is a card that is not divided.
const (
	VirtHost Virtualization = iota
	VirtVGCU
	VirtMDEV
	VirtSRIOVPF
	VirtSRIOVVF
)

// Process is a process that holds memory of a card. PID is as the host sees it.
type Process struct {
	PID                      int
	DeviceBytes, SystemBytes int64
}

// Port is a port of the card-to-card interconnect.
type Port struct {
	Number int
	Link   Reading[Link]
	// Connected says whether there is a card at the other end; Remote and RemotePort say which.
	Connected  bool
	Remote     topology.Address
	RemotePort int
}

// VirtualDevice is a part of a card in mode VirtVGCU.
type VirtualDevice struct {
	Number int
	Memory Reading[Memory]
	Usage  Reading[float64]
}

// ErrorRecord is an entry of the driver's error log. The numbers are the driver's.
type ErrorRecord struct {
	ID                uint64
	ResetType, Source uint32
	Timestamp         uint64
}
