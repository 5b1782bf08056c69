package efsmi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/internal/lane"
)

const (
	// maxAge is how old a printed report may be to answer another question. One run of the tool prints
	// all cards, so that a round over all cards starts it once.
	maxAge = 100 * time.Millisecond
	// runTimeout bounds a run whose caller sets no limit.
	runTimeout = 10 * time.Second
)

// Tool asks the tool about the cards. It may be shared between goroutines.
type Tool struct {
	run  Runner
	lane *lane.Lane

	mu     sync.Mutex // guards report, partly and at
	report Report
	partly error
	at     time.Time
}

var (
	_ eflib.Inventory = (*Tool)(nil)
	_ eflib.Telemetry = (*Tool)(nil)
)

// New returns a back end that asks by a runner.
func New(run Runner) *Tool { return &Tool{run: run, lane: lane.New()} }

// Devices returns the cards that the tool prints. Their minor is the tool's index.
func (t *Tool) Devices(ctx context.Context) ([]eflib.Device, error) {
	r, partly, err := t.fresh(ctx)
	if err != nil {
		return nil, err
	}
	devices := make([]eflib.Device, 0, len(r.Cards))
	for _, c := range r.Cards {
		id, _ := c.Sample.Identity.Value()
		d := eflib.Device{
			Minor: c.Index, Node: eflib.NodePath(c.Index), UUID: id.UUID, SerialNumber: id.SerialNumber,
			VendorID: c.VendorID, DeviceID: c.Device, PCIAddress: c.Address, NUMA: -1, MemoryMiB: int64(c.TotalMiB),
		}
		model, known := eflib.ModelOf(c.Device)
		d.Model, d.Product, d.Family = model.Name, model.Product, model.Family
		if !known {
			d.Model = eflib.ModelName(id.Name)
		}
		health, err := c.Sample.Health.Get()
		if err != nil {
			health = eflib.UnknownHealth(err)
		}
		d.Health = health
		devices = append(devices, d)
	}
	slices.SortFunc(devices, func(a, b eflib.Device) int { return a.Minor - b.Minor })
	return devices, partly
}

// Host returns the version of the driver as the tool prints it.
func (t *Tool) Host(ctx context.Context) (eflib.Host, error) {
	r, _, err := t.fresh(ctx)
	return eflib.Host{DriverVersion: r.Driver}, err
}

// Sample returns what the tool prints about a card.
func (t *Tool) Sample(ctx context.Context, device eflib.Device, want eflib.Field) (eflib.Sample, error) {
	s := eflib.Sample{Minor: device.Minor, Time: time.Now()}
	r, partly, err := t.fresh(ctx)
	if err == nil {
		i := slices.IndexFunc(r.Cards, func(c Card) bool { return c.Address == device.PCIAddress })
		if i >= 0 {
			s.Take(r.Cards[i].Sample, want)
			return s, nil
		}
		err = eflib.ErrDeviceLost
		if partly != nil { // the card may be the one that was not understood
			err = partly
		}
	}
	s.Fail(want, device.Entry(), err)
	return s, &eflib.DeviceError{Entry: device.Entry(), Err: err}
}

// fresh returns a report of now, or of a moment ago. One run goes on at a time; those who wait for it
// share its report.
func (t *Tool) fresh(ctx context.Context) (Report, error, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	var failure error
	if err := t.lane.Do(ctx, func() {
		t.mu.Lock()
		young := time.Since(t.at) < maxAge
		t.mu.Unlock()
		if young {
			return
		}
		report, partly, err := t.ask(ctx)
		failure = err
		if err == nil {
			t.mu.Lock()
			t.report, t.partly, t.at = report, partly, time.Now()
			t.mu.Unlock()
		}
	}); err != nil {
		return Report{}, nil, fmt.Errorf("efsmi: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.report, t.partly, failure
}

// ask runs the tool. -q tells most; a release that prints something else there is read by its table.
func (t *Tool) ask(ctx context.Context) (Report, error, error) {
	text, err := t.run(ctx, "-q")
	if err == nil {
		r, partly := ParseQuery(string(text))
		if !errors.Is(partly, ErrNoCards) && len(r.Cards) > 0 {
			return r, partly, nil
		}
		err = partly
	}
	if ctx.Err() != nil {
		return Report{}, nil, err
	}
	text, err2 := t.run(ctx)
	if err2 != nil {
		return Report{}, nil, errors.Join(err, err2)
	}
	r, partly := ParseTable(string(text))
	if errors.Is(partly, ErrNoCards) {
		return Report{}, nil, errors.Join(err, partly)
	}
	return r, partly, nil
}
