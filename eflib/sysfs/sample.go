package sysfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/topology"
)

var _ eflib.Telemetry = (*Inventory)(nil)

// Sample reads the PCIe link, which is all that the kernel tells of a card at run time.
func (i *Inventory) Sample(ctx context.Context, device eflib.Device, want eflib.Field) (eflib.Sample, error) {
	s := eflib.Sample{Minor: device.Minor, Time: time.Now()}
	if err := i.present(ctx, device); err != nil {
		s.Fail(want, device.Entry(), err)
		return s, &eflib.DeviceError{Entry: device.Entry(), Err: err}
	}
	if want.Has(eflib.FieldPCIeLink) {
		s.PCIeLink = i.link(path.Join(topology.PCIDevices, device.PCIAddress.String()))
		s.Name(device.Entry())
	}
	s.Fail(want, device.Entry(), eflib.ErrNotSupported)
	return s, nil
}

// present makes sure that there is a driver and that it has the card.
func (i *Inventory) present(ctx context.Context, device eflib.Device) error {
	if err := eflib.ContextError(ctx); err != nil {
		return err
	}
	if _, err := i.driver(); err != nil {
		return err
	}
	driver, err := i.driverFolder(path.Join(topology.PCIDevices, device.PCIAddress.String()))
	if err == nil && driver == "" {
		return eflib.ErrDeviceLost
	}
	return err
}

func (i *Inventory) link(folder string) eflib.Reading[eflib.Link] {
	var n [4]uint32
	for at, file := range [...]string{"current_link_speed", "max_link_speed", "current_link_width", "max_link_width"} {
		text, err := readText(i.fsys, path.Join(folder, file))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%w: %w", eflib.ErrNotSupported, err)
		}
		if err == nil {
			n[at], err = parseLink(text)
		}
		if err != nil {
			return eflib.Unknown[eflib.Link](err)
		}
	}
	return eflib.PCIeLinkOf(n[0], n[1], n[2], n[3])
}

// generations are the speeds of PCIe as the kernel writes them. Older kernels write "8 GT/s".
var generations = map[string]uint32{"2.5": 1, "5.0": 2, "5": 2, "8.0": 3, "8": 3, "16.0": 4, "16": 4, "32.0": 5, "32": 5, "64.0": 6, "64": 6}

// parseLink reads "32.0 GT/s PCIe" as generation 5, and "16" as 16 lanes.
func parseLink(text string) (uint32, error) {
	if speed, unit, isSpeed := strings.Cut(text, " "); isSpeed {
		if generation, known := generations[speed]; known && strings.HasPrefix(unit, "GT/s") {
			return generation, nil
		}
		return 0, fmt.Errorf("%w: link speed %q", eflib.ErrImplausible, text)
	}
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("%w: link width %q", eflib.ErrImplausible, text)
	}
	return uint32(n), nil
}
