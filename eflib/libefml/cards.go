package libefml

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/topscloud/topscloud/eflib"
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
	n, err := l.count(ctx)
	if err != nil {
		return nil, err
	}
	devices, errs := make([]*eflib.Device, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { devices[i], errs[i] = l.describe(ctx, uint32(i)) })
	}
	wg.Wait()
	l.forgetFrom(n)
	if err := eflib.ContextError(ctx); err != nil && !errors.Is(err, eflib.ErrTimeout) {
		return nil, err
	}
	out := make([]eflib.Device, 0, n)
	for _, d := range devices {
		if d != nil {
			out = append(out, *d)
		}
	}
	return out, errors.Join(errs...)
}

// count asks how many cards there are.
func (l *Library) count(ctx context.Context) (int, error) {
	n, err := ask[uint32](ctx, l, l.host, "EfmlGetDevCount")
	switch {
	case errors.Is(err, eflib.ErrDeviceLost): // "no device", asked how many there are
		return 0, nil
	case err != nil:
		return 0, err
	case n > maxCards:
		return 0, fmt.Errorf("EfmlGetDevCount: %w: %d cards", eflib.ErrImplausible, n)
	}
	return int(n), nil
}

// seen is what a card said about where it is.
type seen struct {
	address        topology.Address
	vendor, device uint32
	err            error
}

// remember notes where a card is. A card that does not answer stays where it was.
func (l *Library) remember(index uint32, f seen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.err != nil {
		return
	}
	maps.DeleteFunc(l.index, func(_ topology.Address, at uint32) bool { return at == index })
	l.index[f.address] = index
}

// forgetFrom drops what was noted about indexes that are no more.
func (l *Library) forgetFrom(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.index, func(_ topology.Address, at uint32) bool { return int(at) >= n })
}

// lastAt returns the address that was last seen at an index.
func (l *Library) lastAt(index uint32) (topology.Address, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for address, at := range l.index {
		if at == index {
			return address, true
		}
	}
	return topology.Address{}, false
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
	f := seen{
		address: topology.Address{Domain: info.Domain, Bus: uint8(info.Bus), Device: uint8(info.Dev), Function: uint8(info.Func)},
		vendor:  info.Vendor, device: info.Device,
	}
	l.remember(index, f)
	return f
}

// describe makes a device of the card at an index. It may return a device and an error.
func (l *Library) describe(ctx context.Context, index uint32) (*eflib.Device, error) {
	f := l.where(ctx, index)
	d := &eflib.Device{
		Minor: int(index), Node: eflib.NodePath(int(index)), PCIAddress: f.address, NUMA: -1,
		VendorID: uint16(f.vendor), DeviceID: uint16(f.device),
	}
	if f.err != nil {
		last, known := l.lastAt(index)
		if !known || !errors.Is(f.err, eflib.ErrTimeout) {
			return nil, &eflib.DeviceError{Entry: fmt.Sprintf("index %d", index), Err: f.err}
		}
		d.PCIAddress, d.Health = last, eflib.UnknownHealth(f.err)
		return d, &eflib.DeviceError{Entry: d.Entry(), Err: f.err}
	}
	s, err := l.sample(ctx, index, *d, eflib.FieldIdentity|eflib.FieldMemory|eflib.FieldHealth)
	if err != nil {
		d.Health = eflib.UnknownHealth(err)
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
	d.UUID, d.SerialNumber = identity.UUID, identity.SerialNumber
	model, known := eflib.ModelOf(d.DeviceID)
	d.Model, d.Product, d.Family = model.Name, model.Product, model.Family
	if !known {
		d.Model = eflib.ModelName(identity.Name)
	}
	memory, err := s.Memory.Get()
	note(err)
	d.MemoryMiB = memory.TotalBytes >> 20
	health, err := s.Health.Get()
	note(err)
	if err != nil {
		health = eflib.UnknownHealth(err)
	}
	d.Health = health
	if node, err := card[int32](ctx, l, index, "EfmlGetNumaNode"); err == nil && node >= 0 && node < 1<<16 {
		d.NUMA = int(node)
	}
	return d, errors.Join(errs...)
}

// indexOf finds a card by its address and makes sure that it is still there. All cards are asked at the
// same time, and one that hangs is not waited for once the right one has answered.
func (l *Library) indexOf(ctx context.Context, address topology.Address) (uint32, error) {
	l.mu.Lock()
	index, known := l.index[address]
	l.mu.Unlock()
	if known {
		switch at := l.where(ctx, index); {
		case at.err == nil && at.address == address:
			return index, nil
		case errors.Is(at.err, eflib.ErrTimeout), errors.Is(at.err, eflib.ErrDriverNotLoaded), errors.Is(at.err, ErrClosed):
			return 0, at.err
		}
	}
	n, err := l.count(ctx)
	if err != nil {
		return 0, err
	}
	type answer struct {
		index int
		seen
	}
	answers := make(chan answer, n) // so that nobody waits to be heard
	for i := range n {
		go func() { answers <- answer{i, l.where(ctx, uint32(i))} }()
	}
	var hidden error
	for range n {
		a := <-answers
		if a.err == nil && a.address == address {
			return uint32(a.index), nil
		}
		if a.err != nil {
			hidden = a.err
		}
	}
	if hidden != nil {
		return 0, fmt.Errorf("may be the card that does not tell where it is: %w", hidden)
	}
	return 0, eflib.ErrDeviceLost
}
