package sysfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/topology"
)

const (
	driverVersion = "sys/module/enflame/version"
	machineName   = "sys/class/dmi/id/product_name"
)

// Inventory reads the cards of one host. It keeps nothing between calls and may be shared.
type Inventory struct {
	fsys fs.FS
}

var _ eflib.Inventory = (*Inventory)(nil)

// New returns the inventory of a host. fsys is rooted at the host's root, where sys is a folder, and has
// to follow links as os.DirFS does.
func New(fsys fs.FS) *Inventory { return &Inventory{fsys: fsys} }

// Devices reads all cards.
func (i *Inventory) Devices(ctx context.Context) ([]eflib.Device, error) {
	if _, err := i.driver(); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(i.fsys, topology.PCIDevices)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("host has no PCI bus: %w: %w", eflib.ErrNotSupported, err)
	case err != nil && len(entries) == 0:
		return nil, err
	}
	errs := []error{err} // nil, or the listing broke off after some entries
	var devices []eflib.Device
	for _, entry := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		device, err := i.read(entry.Name())
		if err != nil {
			errs = append(errs, &eflib.DeviceError{Entry: entry.Name(), Err: err})
		}
		if device != nil {
			devices = append(devices, *device)
		}
	}
	devices, twice := dropDuplicates(devices)
	return devices, errors.Join(append(errs, twice...)...)
}

// Host reads what the host says of itself. The machine's name is often not readable in a container or
// missing in a virtual machine, which is no error.
func (i *Inventory) Host(context.Context) (eflib.Host, error) {
	version, err := i.driver()
	if err != nil {
		return eflib.Host{}, err
	}
	product, err := readText(i.fsys, machineName)
	if err != nil {
		product = ""
	}
	return eflib.Host{DriverVersion: version, Product: product}, nil
}

// driver returns the version of the loaded driver.
func (i *Inventory) driver() (string, error) {
	version, err := readText(i.fsys, driverVersion)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %w", eflib.ErrDriverNotLoaded, err)
	}
	return version, err
}

// dropDuplicates sorts by minor and takes out all cards that share a minor with another: nothing tells
// which of them /dev/gcuN is.
func dropDuplicates(devices []eflib.Device) ([]eflib.Device, []error) {
	slices.SortFunc(devices, func(a, b eflib.Device) int {
		if a.Minor != b.Minor {
			return a.Minor - b.Minor
		}
		return a.PCIAddress.Compare(b.PCIAddress)
	})
	var errs []error
	kept := devices[:0:0]
	for i, d := range devices {
		if i > 0 && devices[i-1].Minor == d.Minor || i+1 < len(devices) && devices[i+1].Minor == d.Minor {
			errs = append(errs, &eflib.DeviceError{Entry: d.PCIAddress.String(), Err: fmt.Errorf("gcu%d: %w", d.Minor, eflib.ErrDuplicateMinor)})
			continue
		}
		kept = append(kept, d)
	}
	return kept, errs
}
