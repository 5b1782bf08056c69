package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/topscloud/topscloud/eflib"
)

// Live is a machine that changes while it runs: it has the faults its control file lists. It may be
// shared between goroutines.
type Live struct {
	machine Machine // never changed
	file    string
}

var (
	_ eflib.Inventory = (*Live)(nil)
	_ eflib.Telemetry = (*Live)(nil)
)

// NewLive returns a machine with a control file, which need not exist. With an empty path the machine
// has no faults.
func NewLive(m Machine, controlFile string) *Live {
	return &Live{machine: m.Clone(), file: controlFile}
}

// Machine returns the machine as it is now, and what in the control file was not understood.
func (l *Live) Machine() (Machine, error) {
	m := l.machine.Clone()
	text, err := readFaults(l.file)
	if err != nil {
		return m, err
	}
	faults, err := ParseFaults(text)
	if err != nil {
		err = fmt.Errorf("control file %s: %w", l.file, err)
	}
	for _, f := range faults {
		err = errors.Join(err, f.Apply(&m))
	}
	return m, err
}

// Devices returns the cards there are now.
func (l *Live) Devices(ctx context.Context) ([]eflib.Device, error) {
	m, problem := l.Machine()
	devices, err := m.Devices(ctx)
	if problem == nil {
		return devices, err
	}
	return devices, errors.Join(err, problem)
}

// Host returns what the host says of itself now.
func (l *Live) Host(ctx context.Context) (eflib.Host, error) {
	m, _ := l.Machine() // Devices tells what is wrong with the control file
	return m.Host(ctx)
}

// Sample reads a card as it is now. A card that hangs holds it up until ctx ends or the fault is
// healed.
func (l *Live) Sample(ctx context.Context, device eflib.Device, want eflib.Field) (eflib.Sample, error) {
	limit, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		m, _ := l.Machine()
		if !m.state[device.Minor].hangs || limit.Err() != nil {
			return m.Sample(limit, device, want)
		}
		select {
		case <-limit.Done():
		case <-ticker.C:
		}
	}
}

// maxControlFile bounds what is read of a control file.
const maxControlFile = 1 << 20

func readFaults(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxControlFile))
	return string(b), err
}
