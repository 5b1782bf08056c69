package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/topscloud/topscloud/eflib"
)

// treePrefix starts the names of the trees that WriteSysfs makes beside root/sys.
const treePrefix = ".sim-sys-"

// bridgeVendor is the vendor of the bridges, one that makes no cards.
const bridgeVendor = 0x8086

// WriteSysfs writes the part of /sys below root that package sysfs reads. It may be called again after
// a change: root/sys is a link that is moved to a new tree in one step, so a reader sees the machine
// before or after the change. The tree before is kept until the next call, for readers that are in it.
// A root/sys that WriteSysfs did not make is an error.
func (m Machine) WriteSysfs(root string) error {
	current, err := currentTree(root)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	tree, err := os.MkdirTemp(root, treePrefix)
	if err != nil {
		return err
	}
	if err := m.writeTree(tree); err != nil {
		return errors.Join(err, os.RemoveAll(tree))
	}
	fresh := filepath.Base(tree)
	link := filepath.Join(root, fresh+"-link")
	if err := os.Symlink(fresh, link); err != nil {
		return err
	}
	if err := os.Rename(link, filepath.Join(root, "sys")); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(root, treePrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if base := filepath.Base(path); base != fresh && base != current {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// currentTree returns the name of the tree root/sys leads to, "" when there is none.
func currentTree(root string) (string, error) {
	sys := filepath.Join(root, "sys")
	target, err := os.Readlink(sys)
	switch {
	case err == nil && strings.HasPrefix(target, treePrefix):
		return target, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	}
	return "", fmt.Errorf("%s was not written by a simulated machine", sys)
}

// writer writes files below a folder and remembers the first error.
type writer struct {
	root string
	err  error
	// functions are the places written already: a bridge stands above several cards.
	functions map[string]bool
}

func (w *writer) folder(name string) {
	if w.err == nil {
		w.err = os.MkdirAll(filepath.Join(w.root, name), 0o755)
	}
}

func (w *writer) file(name, text string) {
	if w.err != nil {
		return
	}
	path := filepath.Join(w.root, name)
	w.err = os.WriteFile(path, []byte(text+"\n"), 0o644)
	if errors.Is(w.err, fs.ErrNotExist) {
		if w.err = os.MkdirAll(filepath.Dir(path), 0o755); w.err == nil {
			w.err = os.WriteFile(path, []byte(text+"\n"), 0o644)
		}
	}
}

// function writes a PCI function at a place below devices and its link on the bus.
func (w *writer) function(place string, vendor, device uint16, class uint32, numa int) {
	if w.functions[place] {
		return
	}
	w.functions[place] = true
	w.file(filepath.Join(place, "vendor"), fmt.Sprintf("0x%04x", vendor))
	w.file(filepath.Join(place, "device"), fmt.Sprintf("0x%04x", device))
	w.file(filepath.Join(place, "class"), fmt.Sprintf("0x%06x", class))
	w.file(filepath.Join(place, "numa_node"), fmt.Sprint(numa))
	if w.err == nil {
		link := filepath.Join(w.root, "bus/pci/devices", filepath.Base(place))
		w.err = os.Symlink(filepath.Join("../../..", place), link)
		if errors.Is(w.err, fs.ErrExist) { // two places of one address; the first stays
			w.err = nil
		}
	}
}

func (m Machine) writeTree(root string) error {
	w := &writer{root: root, err: os.Chmod(root, 0o755), functions: map[string]bool{}}
	if m.DriverVersion != "" {
		w.file("module/enflame/version", m.DriverVersion)
	}
	w.file("class/dmi/id/product_name", m.Product)
	w.folder("bus/pci/devices")
	for _, c := range m.Cards {
		m.writeCard(w, c)
	}
	return w.err
}

func (m Machine) writeCard(w *writer, c eflib.Device) {
	if len(c.Bridges) == 0 {
		// A function always hangs below some root complex; one of its own says nothing about others.
		c.Bridges = []string{fmt.Sprintf("pci%04x:%02x", c.PCIAddress.Domain, c.PCIAddress.Bus)}
	}
	place := "devices"
	for i, bridge := range slices.Backward(c.Bridges) {
		place = filepath.Join(place, bridge)
		if i < len(c.Bridges)-1 {
			w.function(place, bridgeVendor, 0, 0x060400, c.NUMA)
		}
	}
	place = filepath.Join(place, c.PCIAddress.String())
	w.function(place, c.VendorID, c.DeviceID, 0x120000, c.NUMA)
	link := m.link(c)
	w.file(filepath.Join(place, "current_link_speed"), linkSpeed(link.Generation))
	w.file(filepath.Join(place, "max_link_speed"), linkSpeed(link.MaxGeneration))
	w.file(filepath.Join(place, "current_link_width"), fmt.Sprint(link.Width))
	w.file(filepath.Join(place, "max_link_width"), fmt.Sprint(link.MaxWidth))
	if m.DriverVersion == "" {
		return
	}
	node := filepath.Join(place, fmt.Sprintf("enflame/gcu%d", c.Minor))
	w.folder(node)
	if !m.broken[c.Minor] {
		w.file(filepath.Join(node, "dev"), fmt.Sprintf("%d:%d", c.Major, c.DevMinor))
	}
}

// linkSpeed returns what the kernel says of a generation of PCIe.
func linkSpeed(generation int) string {
	return [...]string{"Unknown", "2.5", "5.0", "8.0", "16.0", "32.0", "64.0"}[generation] + " GT/s PCIe"
}
