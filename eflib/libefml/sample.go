package libefml

import (
	"context"
	"errors"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
)

// step reads one field into a sample.
type step struct {
	field eflib.Field
	read  func(ctx context.Context, q question, s *eflib.Sample)
}

// steps are in the order in which they are asked: what an agent needs to know of a card comes first,
// and what samples for a while last.
var steps = [...]step{
	{eflib.FieldHealth, readHealth},
	{eflib.FieldIdentity, readIdentity},
	{eflib.FieldMemory, readMemory},
	{eflib.FieldECC, readECC},
	{eflib.FieldRMA, readRMA},
	{eflib.FieldTemperature, readTemperature},
	{eflib.FieldPower, readPower},
	{eflib.FieldClock, readClock},
	{eflib.FieldPowerMode, readPowerMode},
	{eflib.FieldVirtualization, readVirtualization},
	{eflib.FieldPCIeLink, readPCIeLink},
	{eflib.FieldProcesses, readProcesses},
	{eflib.FieldPorts, readPorts},
	{eflib.FieldVirtualDevices, readVirtualDevices},
	{eflib.FieldErrorRecords, readErrorRecords},
	{eflib.FieldPCIeThroughput, readThroughput},
	{eflib.FieldUsage, readUsage},
	{eflib.FieldSIPUsage, readSIPUsage},
	{eflib.FieldClusterUsage, readClusterUsage},
	{eflib.FieldPGUsage, readPGUsage},
}

// question is whom a step asks.
type question struct {
	l     *Library
	index uint32
}

// Sample reads a card. Between two steps it looks at the time: what is left when it is up is an
// eflib.ErrTimeout, as is the rest once a call did not return.
func (l *Library) Sample(ctx context.Context, device eflib.Device, want eflib.Field) (eflib.Sample, error) {
	s := eflib.Sample{Minor: device.Minor, Time: time.Now()}
	index, err := l.indexOf(ctx, device.PCIAddress)
	if err != nil {
		s.Fail(want, device.Entry(), err)
		return s, &eflib.DeviceError{Entry: device.Entry(), Err: err}
	}
	return l.sample(ctx, index, device, want)
}

// sample reads the card at an index.
func (l *Library) sample(ctx context.Context, index uint32, device eflib.Device, want eflib.Field) (eflib.Sample, error) {
	s := eflib.Sample{Minor: device.Minor, Time: time.Now()}
	for _, step := range steps {
		if want.Has(step.field) {
			step.read(ctx, question{l, index}, &s)
		}
	}
	whole := s.Whole(want)
	s.Name(device.Entry())
	if whole != nil {
		return s, &eflib.DeviceError{Entry: device.Entry(), Err: whole}
	}
	return s, nil
}

// reading turns an answer into a reading, or the error into its reason.
func reading[A, T any](answer A, err error, convert func(A) eflib.Reading[T]) eflib.Reading[T] {
	if err != nil {
		return eflib.Unknown[T](err)
	}
	return convert(answer)
}

func readIdentity(ctx context.Context, q question, s *eflib.Sample) {
	var id eflib.Identity
	var err error
	if id.UUID, err = cardID(ctx, q.l, q.index, "EfmlGetDevUuid"); err != nil && !errors.Is(err, eflib.ErrNotSupported) {
		s.Identity = eflib.Unknown[eflib.Identity](err)
		return
	}
	id.UUID = contract.NormalUUID(id.UUID)
	if id.SerialNumber, err = cardID(ctx, q.l, q.index, "EfmlGetDevSn"); err != nil && !errors.Is(err, eflib.ErrNotSupported) {
		s.Identity = eflib.Unknown[eflib.Identity](err)
		return
	}
	for _, t := range []struct {
		function string
		place    *string
	}{
		{"EfmlGetDevName", &id.Name}, {"EfmlGetDevSKU", &id.SKU}, {"EfmlGetDevPn", &id.PartNumber},
		{"EfmlGetDevMfd", &id.ManufacturedOn}, {"EfmlGetFwVersion", &id.Firmware}, {"EfmlGetHwArchName", &id.Architecture},
		{"EfmlGetDevSlotOamName", &id.Slot}, {"EfmlGetAffinityCpuList", &id.CPUs},
	} {
		*t.place, err = cardText(ctx, q.l, q.index, t.function)
		if errors.Is(err, eflib.ErrTimeout) {
			s.Identity = eflib.Unknown[eflib.Identity](err)
			return
		}
	}
	s.Identity = eflib.Known(id)
}

// readHealth asks for the driver's own verdict and for the mark that sends a card back. The counters of
// ECC say more about the cause, not about the verdict: they count from a time nobody tells.
func readHealth(ctx context.Context, q question, s *eflib.Sample) {
	well, err := cardBool(ctx, q.l, q.index, "EfmlGetDevHealth")
	if errors.Is(err, eflib.ErrTimeout) {
		s.Health = eflib.Unknown[eflib.Health](err)
		return
	}
	if rma, problem := card[rmaDetails](ctx, q.l, q.index, "EfmlGetDevRmaDetails"); problem == nil {
		if flagged, problem := truth(rma.Flagged); problem == nil && flagged && rma.Supported == 1 {
			s.Health = eflib.Known(eflib.Health{State: eflib.Unhealthy, Cause: "marked for replacement (RMA)"})
			return
		}
	}
	switch {
	case err != nil:
		s.Health = eflib.Unknown[eflib.Health](err)
	case well:
		s.Health = eflib.Known(eflib.Health{State: eflib.Healthy})
	default:
		cause := "reported unhealthy by the driver"
		ecc, err := card[eccStatus](ctx, q.l, q.index, "EfmlGetDevEccStatus")
		if _, known := reading(ecc, err, convertECC).Value(); known && ecc.DoubleBit > 0 {
			cause += ", with double-bit ECC errors"
		}
		s.Health = eflib.Known(eflib.Health{State: eflib.Unhealthy, Cause: cause})
	}
}
