package libefml

// The structs of the library's binary interface. Go lays them out as C does on amd64 and arm64; a test
// compares sizes and offsets with what a C compiler says.

const (
	textSize     = 128
	maxCards     = 128
	maxProcesses = 64
	maxRecords   = 64
)

type text [textSize]byte

type devInfo struct {
	Name                                                  text
	Vendor, Device, Domain, Bus, Dev, Func, LogicalNumber uint32
}

// memory has its total in bytes and the part in use in MiB.
type memory struct {
	TotalBytes uint64
	UsedMiB    uint32
}

type power struct{ Capability, Current float32 }

type temperature struct{ ASIC, Memory, Board float32 }

type clock struct{ HBM, Core uint32 }

type link struct{ Speed, MaxSpeed, Width, MaxWidth uint32 }

type throughput struct {
	Transmit, Receive       float32
	TransmitNAK, ReceiveNAK uint64
}

type eccStatus struct {
	Enabled, Pending, BlacklistPending uint8
	SingleBit, DoubleBit               uint32
}

type rmaDetails struct {
	Supported, Flagged uint8
	DoubleBit          uint32
}

type portInfo struct {
	Connected                                                                  uint32
	UUID                                                                       [16]byte
	Vendor, Device, Domain, Bus, Dev, Func, Port, PortType                     uint32
	RemoteCard                                                                 uint32
	RemoteUUID                                                                 [16]byte
	RemoteVendor, RemoteDevice, RemoteDomain, RemoteBus, RemoteDev, RemoteFunc uint32
	RemotePort, RemotePortType                                                 uint32
}

type process struct {
	PID                      uint32
	DeviceBytes, SystemBytes uint64
}

type event struct {
	ID, Type uint32
	Message  text
}

type errorRecord struct {
	ID                uint64
	ResetType, Source uint32
	Timestamp         uint64
	BDF               uint32
}
