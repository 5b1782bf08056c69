package libefml

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

var (
	_ eflib.Inventory = (*Library)(nil)
	_ eflib.Telemetry = (*Library)(nil)
)

// Host asks for the version of the driver.
func (l *Library) Host(ctx context.Context) (eflib.Host, error) {
	raw, err := ask[text](ctx, l, l.host, "EfmlGetDriverVer")
	return eflib.Host{DriverVersion: clean(raw[:])}, err
}

// Version asks for the version of the library.
func (l *Library) Version(ctx context.Context) (string, error) {
	raw, err := ask[text](ctx, l, l.host, "EfmlGetLibVer")
	return clean(raw[:]), err
}

// Devices asks every card who it is. The cards are asked at the same time; one that does not answer is
// an error, or a device of unknown health if it was seen before.
func (l *Library) Devices(ctx context.Context) ([]eflib.Device, error) {
	found, err := l.enumerate(ctx)
	if err != nil {
		return nil, err
	}
	devices, errs := make([]*eflib.Device, len(found)), make([]error, len(found))
	var wg sync.WaitGroup
	for i, f := range found {
		wg.Go(func() {
			if f.known {
				devices[i], errs[i] = l.device(ctx, uint32(i), f)
			} else {
				errs[i] = &eflib.DeviceError{Entry: fmt.Sprintf("index %d", i), Err: f.err}
			}
		})
	}
	wg.Wait()
	if err := eflib.ContextError(ctx); err != nil && !errors.Is(err, eflib.ErrTimeout) {
		return nil, err
	}
	out := make([]eflib.Device, 0, len(found))
	for _, d := range devices {
		if d != nil {
			out = append(out, *d)
		}
	}
	slices.SortFunc(out, func(a, b eflib.Device) int { return a.Minor - b.Minor })
	return out, errors.Join(errs...)
}

// seen is what enumerate learned about one index.
type seen struct {
	address        topology.Address
	vendor, device uint32
	known          bool  // address is set
	err            error // why it was not asked this time
}

// enumerate asks how many cards there are and where they are.
func (l *Library) enumerate(ctx context.Context) ([]seen, error) {
	n, err := ask[uint32](ctx, l, l.host, "EfmlGetDevCount")
	if code := (*CodeError)(nil); errors.As(err, &code) && errors.Is(err, eflib.ErrDeviceLost) {
		n, err = 0, nil // "no device", asked how many there are
	}
	switch {
	case err != nil:
		return nil, err
	case n > maxCards:
		return nil, fmt.Errorf("EfmlGetDevCount: %w: %d cards", eflib.ErrImplausible, n)
	}
	found := make([]seen, n)
	var wg sync.WaitGroup
	for i := range found {
		wg.Go(func() { found[i] = l.where(ctx, uint32(i)) })
	}
	wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.index
	l.index = map[topology.Address]uint32{}
	for i, f := range found {
		if f.known {
			l.index[f.address] = uint32(i)
		}
	}
	// A card that hangs is where it was, unless another card is there now.
	for address, i := range before {
		if _, moved := l.index[address]; !moved && int(i) < len(found) && !found[i].known && errors.Is(found[i].err, eflib.ErrTimeout) {
			found[i].address, found[i].known = address, true
			l.index[address] = i
		}
	}
	return found, nil
}

// where asks for the PCI address at an index.
func (l *Library) where(ctx context.Context, index uint32) seen {
	info, err := card[devInfo](ctx, l, index, "EfmlGetDevInfo")
	if err != nil {
		return seen{err: err}
	}
	if info.Bus > 0xff || info.Dev > 0x1f || info.Func > 7 || info.Domain == ^uint32(0) {
		return seen{err: fmt.Errorf("EfmlGetDevInfo: %w: PCI address %x:%x:%x.%x", eflib.ErrImplausible, info.Domain, info.Bus, info.Dev, info.Func)}
	}
	return seen{
		address: topology.Address{Domain: info.Domain, Bus: uint8(info.Bus), Device: uint8(info.Dev), Function: uint8(info.Func)},
		vendor:  info.Vendor, device: info.Device, known: true,
	}
}

// device describes the card at an index.
func (l *Library) device(ctx context.Context, index uint32, f seen) (*eflib.Device, error) {
	d := &eflib.Device{
		Minor: int(index), Node: eflib.NodePath(int(index)), PCIAddress: f.address, NUMA: -1,
		VendorID: uint16(f.vendor), DeviceID: uint16(f.device),
	}
	if f.err != nil {
		d.Health = eflib.Health{Cause: unknownCause(f.err)}
		return d, &eflib.DeviceError{Entry: d.Entry(), Err: f.err}
	}
	s, err := l.Sample(ctx, *d, eflib.FieldIdentity|eflib.FieldMemory|eflib.FieldHealth)
	if err != nil {
		d.Health = eflib.Health{Cause: unknownCause(err)}
		return d, err
	}
	var errs []error
	note := func(err error) {
		if err != nil && !errors.Is(err, eflib.ErrNotSupported) {
			errs = append(errs, err)
		}
	}
	identity, err := s.Identity.Get()
	note(err)
	d.UUID, d.SerialNumber = contract.NormalUUID(identity.UUID), identity.SerialNumber
	model, known := eflib.ModelOf(d.DeviceID)
	d.Model, d.Product, d.Family = model.Name, model.Product, model.Family
	if !known {
		d.Model = ModelName(identity.Name)
	}
	memory, err := s.Memory.Get()
	note(err)
	d.MemoryMiB = memory.TotalBytes >> 20
	health, err := s.Health.Get()
	note(err)
	if err != nil {
		health.Cause = unknownCause(err)
	}
	d.Health = health
	if node, err := card[int32](ctx, l, index, "EfmlGetNumaNode"); err == nil && node >= 0 && node < 1<<16 {
		d.NUMA = int(node)
	}
	return d, errors.Join(errs...)
}

// ModelName returns the model in the name a card has for itself: "S60" of "Enflame S60".
func ModelName(name string) string {
	return strings.TrimSpace(strings.TrimPrefix(name, "Enflame"))
}

// unknownCause says in a few steady words why the health of a card is not known.
func unknownCause(err error) string {
	switch {
	case errors.Is(err, eflib.ErrTimeout):
		return "does not answer"
	case errors.Is(err, eflib.ErrDeviceLost):
		return "lost"
	case errors.Is(err, eflib.ErrDriverNotLoaded):
		return "driver not loaded"
	case errors.Is(err, eflib.ErrNotSupported):
		return "health not supported"
	}
	return "cannot be asked"
}

// indexOf finds a card by its address and makes sure that it is still there.
func (l *Library) indexOf(ctx context.Context, address topology.Address) (uint32, error) {
	l.mu.Lock()
	index, known := l.index[address]
	l.mu.Unlock()
	if known {
		switch at := l.where(ctx, index); {
		case at.known && at.address == address:
			return index, nil
		case errors.Is(at.err, eflib.ErrTimeout), errors.Is(at.err, eflib.ErrDriverNotLoaded), errors.Is(at.err, ErrClosed):
			return 0, at.err
		}
	}
	found, err := l.enumerate(ctx)
	if err != nil {
		return 0, err
	}
	var hidden error
	for i, f := range found {
		switch {
		case f.known && f.address == address:
			return uint32(i), f.err
		case !f.known:
			hidden = f.err
		}
	}
	if hidden != nil {
		return 0, fmt.Errorf("may be the one that does not tell where it is: %w", hidden)
	}
	return 0, eflib.ErrDeviceLost
}
