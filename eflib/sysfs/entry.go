package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/topology"
)

// driverFolders are the names the driver gave its folder below a card, newest first.
var driverFolders = [...]string{"enflame", "zixiao"}

// classAccelerator is the PCI base class of processing accelerators.
const classAccelerator = 0x12

// read reads one entry of the PCI bus. It returns nothing for what is no card of ours, and a device with
// an error where the device can be used but something about it is not known.
func (i *Inventory) read(name string) (*eflib.Device, error) {
	folder := path.Join(topology.PCIDevices, name)
	vendor, err := i.number(folder, "vendor", 4)
	if err != nil {
		return nil, err // it may be a card, so it is not passed over in silence
	}
	driver, err := i.driverFolder(folder)
	if err != nil {
		return nil, err
	}
	if vendor != eflib.VendorID {
		if driver == driverFolders[0] {
			return nil, fmt.Errorf("vendor %#04x has the driver's folder %s", vendor, driver)
		}
		return nil, nil
	}
	class, err := i.number(folder, "class", 6)
	if err != nil {
		return nil, err
	}
	if class>>16 != classAccelerator && driver == "" {
		return nil, nil
	}
	address, err := topology.ParseAddress(name)
	if err != nil {
		return nil, err
	}
	id, err := i.number(folder, "device", 4)
	if err != nil {
		return nil, err
	}
	bridges, numa, err := topology.ReadCard(i.fsys, name)
	if err != nil {
		return nil, err
	}
	if driver == "" {
		return nil, eflib.ErrNotBound
	}
	minor, major, devMinor, err := i.deviceNode(path.Join(folder, driver))
	if err != nil {
		return nil, err
	}
	device := &eflib.Device{
		Minor: minor, UUID: eflib.AddressUUID(address),
		VendorID: uint16(vendor), DeviceID: uint16(id),
		PCIAddress: address, Bridges: bridges, NUMA: numa,
		Node: eflib.NodePath(minor), Major: major, DevMinor: devMinor,
	}
	model, known := eflib.ModelOf(device.DeviceID)
	if !known {
		return device, fmt.Errorf("device id %04x: %w", id, eflib.ErrUnknownModel)
	}
	device.Model, device.Product, device.Family, device.MemoryMiB = model.Name, model.Product, model.Family, model.MemoryMiB
	if model.MemoryMiB == 0 {
		return device, fmt.Errorf("%s: %w", model.Name, eflib.ErrUnknownMemory)
	}
	return device, nil
}

// driverFolder returns the name of the driver's folder below an entry, or "" when there is none.
func (i *Inventory) driverFolder(folder string) (string, error) {
	for _, name := range driverFolders {
		info, err := fs.Stat(i.fsys, path.Join(folder, name))
		switch {
		case err == nil && info.IsDir():
			return name, nil
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
	}
	return "", nil
}

// deviceNode reads the one gcuN below the driver's folder.
func (i *Inventory) deviceNode(folder string) (minor int, major, devMinor uint32, err error) {
	entries, err := fs.ReadDir(i.fsys, folder)
	if err != nil {
		return 0, 0, 0, err
	}
	found := ""
	for _, e := range entries {
		n, ok := parseCardName(e.Name())
		if !ok {
			continue
		}
		if found != "" {
			return 0, 0, 0, fmt.Errorf("%s has both %s and %s", folder, found, e.Name())
		}
		found, minor = e.Name(), n
	}
	if found == "" {
		return 0, 0, 0, fmt.Errorf("%s has no gcuN with N of 0 to %d", folder, topology.MaxCards-1)
	}
	file := path.Join(folder, found, "dev")
	text, err := readText(i.fsys, file)
	if err != nil {
		return 0, 0, 0, err
	}
	major, devMinor, err = parseDev(text)
	if err != nil {
		return 0, 0, 0, fmt.Errorf("%s: %w", file, err)
	}
	return minor, major, devMinor, nil
}

// number reads a file that holds a hexadecimal number of so many digits.
func (i *Inventory) number(folder, name string, digits int) (uint32, error) {
	file := path.Join(folder, name)
	text, err := readText(i.fsys, file)
	if err != nil {
		return 0, err
	}
	n, err := parseHex(text, digits)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return n, nil
}
