package eflib

import (
	"context"
	"reflect"
	"slices"
	"time"
)

// Poller is a Watcher that asks an inventory again and again.
type Poller struct {
	inventory Inventory
	interval  time.Duration
	nudge     <-chan struct{}
}

var _ Watcher = (*Poller)(nil)

// leastAsk is the least time an inventory gets to answer, however short the interval is.
const leastAsk = time.Second

// NewPoller returns a watcher of an inventory. It asks every interval, and at once when nudge yields;
// nudge may be nil. One question may take as long as an interval, or a second if that is longer.
func NewPoller(inventory Inventory, interval time.Duration, nudge <-chan struct{}) *Poller {
	return &Poller{inventory: inventory, interval: max(interval, time.Millisecond), nudge: nudge}
}

// Watch implements Watcher.
func (p *Poller) Watch(ctx context.Context) <-chan State {
	out := make(chan State, 1)
	go func() {
		defer close(out)
		ticker := time.NewTicker(p.interval)
		defer ticker.Stop()
		var last *State
		nudge := p.nudge
		for {
			state := p.look(ctx, last)
			if ctx.Err() != nil {
				return
			}
			if last == nil || !sameState(*last, state) {
				last = &state
				// The channel has one place and one sender: make it free, then fill it.
				select {
				case <-out:
				default:
				}
				out <- state.clone()
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			case _, open := <-nudge:
				if !open {
					nudge = nil
				}
			}
		}
	}()
	return out
}

// look asks once. When nothing at all is known, the cards of the last state are kept as unknown: a
// back end that does not answer says nothing about which cards there are.
func (p *Poller) look(ctx context.Context, last *State) State {
	ask, cancel := context.WithTimeout(ctx, max(p.interval, leastAsk))
	defer cancel()
	devices, err := p.inventory.Devices(ask)
	state := State{Devices: devices, Err: err}
	if _, partial := DeviceErrors(err); partial || len(devices) > 0 || last == nil {
		return state
	}
	state.Devices = cloneDevices(last.Devices)
	for i := range state.Devices {
		state.Devices[i].Health = UnknownHealth(err)
	}
	return state
}

func (s State) clone() State {
	s.Devices = cloneDevices(s.Devices)
	return s
}

func sameState(a, b State) bool {
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	if len(a.Devices) == 0 && len(b.Devices) == 0 {
		return text(a.Err) == text(b.Err)
	}
	return reflect.DeepEqual(a.Devices, b.Devices) && text(a.Err) == text(b.Err)
}

func cloneDevices(devices []Device) []Device {
	devices = slices.Clone(devices)
	for i := range devices {
		devices[i].Bridges = slices.Clone(devices[i].Bridges)
	}
	return devices
}
