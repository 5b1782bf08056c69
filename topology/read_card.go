package topology

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// PCIDevices is the folder of sysfs with one link per PCI function, relative to the root of the host.
const PCIDevices = "sys/bus/pci/devices"

// maxNUMANode is the largest NUMA node the kernel can number.
const maxNUMANode = 1023

// ReadCard reads where the PCI function bdf ("0000:11:00.0") hangs: its bridges, nearest first with the
// root complex ("pci0000:0c") last, and its NUMA node, -1 when unknown. fsys is rooted where sys is a
// folder and has to implement fs.ReadLinkFS, as os.DirFS does.
//
// The place is read from the target of the link below PCIDevices. An entry that leads to anything but
// a PCI function below a root complex, such as a platform device, is an error, and so is a dangling
// link. A root complex may itself hang below other devices; the innermost one counts. A NUMA node that
// is missing, negative, unreadable or no number is unknown and no error.
func ReadCard(fsys fs.FS, bdf string) (bridges []string, numa int, err error) {
	if _, err := ParseAddress(bdf); err != nil {
		return nil, -1, err
	}
	link := path.Join(PCIDevices, bdf)
	target, err := fs.ReadLink(fsys, link)
	if err != nil {
		return nil, -1, err
	}
	folder := path.Join(PCIDevices, target)
	if path.IsAbs(target) {
		return nil, -1, fmt.Errorf("%s: leads to %s, want a relative link", link, target)
	}
	bridges, err = parseDevicePath(folder, bdf)
	if err != nil {
		return nil, -1, fmt.Errorf("%s: %w", link, err)
	}
	if _, err := fs.Stat(fsys, folder); err != nil {
		return nil, -1, err
	}
	return bridges, readNUMA(fsys, path.Join(folder, "numa_node")), nil
}

// parseDevicePath takes the bridges out of "sys/devices/pci0000:0c/0000:0c:02.0/0000:11:00.0".
func parseDevicePath(folder, bdf string) ([]string, error) {
	parts := strings.Split(folder, "/")
	if len(parts) < 3 || parts[0] != "sys" || parts[1] != "devices" {
		return nil, fmt.Errorf("leads to %s, outside sys/devices", folder)
	}
	root := len(parts) - 1
	for root > 1 && !isRootComplex(parts[root]) {
		root--
	}
	if root <= 1 {
		return nil, fmt.Errorf("leads to %s, which is below no PCI root complex", folder)
	}
	chain := parts[root:]
	for _, part := range chain[1:] {
		if _, err := ParseAddress(part); err != nil {
			return nil, fmt.Errorf("leads to %s: %w", folder, err)
		}
	}
	if chain[len(chain)-1] != bdf {
		return nil, fmt.Errorf("leads to %s, another device", folder)
	}
	bridges := slices.Clone(chain[:len(chain)-1])
	slices.Reverse(bridges)
	return bridges, nil
}

// isRootComplex reports whether a name is that of a root complex, "pci0000:0c".
func isRootComplex(name string) bool {
	domain, bus, ok := strings.Cut(strings.TrimPrefix(name, "pci"), ":")
	if !ok || !strings.HasPrefix(name, "pci") || len(domain) < 4 || len(bus) != 2 {
		return false
	}
	_, ok1 := hex(domain)
	_, ok2 := hex(bus)
	return ok1 && ok2
}

func readNUMA(fsys fs.FS, name string) int {
	f, err := fsys.Open(name)
	if err != nil {
		return -1
	}
	defer f.Close()
	// A node fits in a few digits; whatever is longer is no number.
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return -1
	}
	return parseNUMA(string(text))
}

func parseNUMA(text string) int {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
	if err != nil || n > maxNUMANode {
		return -1
	}
	return int(n)
}
