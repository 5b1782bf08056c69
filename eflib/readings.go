package eflib

import (
	"errors"
	"iter"
)

// slot is one reading of a sample, whatever its type.
type slot struct {
	field Field
	name  string
	ptr   any
	any   AnyReading
	known func() bool
	err   func() error
	fail  func(error)
	about func(entry, name string)
	fill  func(from any)
}

// readings lists the readings of a sample, always in the same order. It is the one place where the
// name of a reading in errors and the field it belongs to are written down.
func (s *Sample) readings() []slot {
	return []slot{
		slotOf(FieldIdentity, "identity", &s.Identity),
		slotOf(FieldHealth, "health", &s.Health),
		slotOf(FieldMemory, "memory", &s.Memory),
		slotOf(FieldPower, "power", &s.PowerWatts),
		slotOf(FieldPower, "power capability", &s.PowerCap),
		slotOf(FieldTemperature, "asic temperature", &s.ASICCelsius),
		slotOf(FieldTemperature, "memory temperature", &s.HBMCelsius),
		slotOf(FieldTemperature, "board temperature", &s.BoardCelsius),
		slotOf(FieldClock, "core clock", &s.CoreMHz),
		slotOf(FieldClock, "memory clock", &s.HBMMHz),
		slotOf(FieldUsage, "usage", &s.Usage),
		slotOf(FieldSIPUsage, "sip usage", &s.SIPUsage),
		slotOf(FieldClusterUsage, "cluster usage", &s.ClusterUsage),
		slotOf(FieldPGUsage, "processor group usage", &s.PGUsage),
		slotOf(FieldPCIeLink, "pcie link", &s.PCIeLink),
		slotOf(FieldPCIeThroughput, "pcie throughput", &s.PCIeThroughput),
		slotOf(FieldECC, "ecc", &s.ECC),
		slotOf(FieldRMA, "rma", &s.RMA),
		slotOf(FieldPowerMode, "power mode", &s.PowerMode),
		slotOf(FieldVirtualization, "virtualisation mode", &s.Virtualization),
		slotOf(FieldProcesses, "processes", &s.Processes),
		slotOf(FieldPorts, "interconnect", &s.Ports),
		slotOf(FieldVirtualDevices, "virtual devices", &s.VirtualDevices),
		slotOf(FieldErrorRecords, "error records", &s.ErrorRecords),
	}
}

func slotOf[T any](field Field, name string, r *Reading[T]) slot {
	return slot{
		field: field, name: name, ptr: r, any: r,
		known: func() bool { return r.known }, err: r.Err,
		fail: func(err error) {
			if !r.known && r.err == nil {
				r.err = err
			}
		},
		about: func(entry, name string) {
			if r.err != nil && !errors.As(r.err, new(*DeviceError)) {
				r.err = &DeviceError{Entry: entry, Reading: name, Err: r.err}
			}
		},
		fill: func(from any) {
			if o := from.(*Reading[T]); !r.known && (o.known || r.err == nil) {
				*r = *o
			}
		},
	}
}

// Lacking returns the fields of which some reading has no value for a reason other than ErrNotSupported, readings of
// a card's parts included: what a card should have told and did not.
func (s *Sample) Lacking() Field {
	var f Field
	lacks := func(field Field, err error) {
		if err != nil && !errors.Is(err, ErrNotSupported) {
			f |= field
		}
	}
	for _, r := range s.readings() {
		lacks(r.field, r.err())
	}
	for _, r := range s.ClusterUsage.value {
		lacks(FieldClusterUsage, r.Err())
	}
	for _, r := range s.PGUsage.value {
		lacks(FieldPGUsage, r.Err())
	}
	for _, p := range s.Ports.value {
		lacks(FieldPorts, p.Link.Err())
	}
	for _, v := range s.VirtualDevices.value {
		lacks(FieldVirtualDevices, v.Memory.Err())
		lacks(FieldVirtualDevices, v.Usage.Err())
	}
	return f
}

// Implausible returns how many readings have no value because it could not be true.
func (s *Sample) Implausible() int {
	n := 0
	for _, r := range s.readings() {
		if errors.Is(r.err(), ErrImplausible) {
			n++
		}
	}
	return n
}

// AnyReading is a Reading of any type.
type AnyReading interface {
	Err() error
	String() string
}

// All goes over the readings of a sample by their names in errors, always in the same order.
func (s *Sample) All() iter.Seq2[string, AnyReading] {
	return func(yield func(string, AnyReading) bool) {
		for _, r := range s.readings() {
			if !yield(r.name, r.any) {
				return
			}
		}
	}
}
