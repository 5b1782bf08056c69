package realnode

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/internal/contract"
)

// ControlMinor is the minor number of /dev/gcuctl; cards have those below it.
const ControlMinor = contract.MaxCards

// WriteHost writes a made-up machine below root, as its /sys and /dev: character devices that no driver
// serves. Opening one gives ENXIO where the rules of a container's cgroup allow it, else EPERM. Nodes of cards that the
// machine does not have (any more) are taken away.
func WriteHost(root string, m sim.Machine) error {
	if err := m.WriteSysfs(root); err != nil {
		return err
	}
	dev := filepath.Join(root, "dev")
	if err := os.MkdirAll(dev, 0o755); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dev, "gcu*"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if len(m.Cards) == 0 {
		return nil
	}
	for _, c := range m.Cards {
		if err := makeNode(filepath.Join(root, c.Node), uint32(c.Major), c.DevMinor); err != nil {
			return err
		}
	}
	return makeNode(filepath.Join(root, contract.ControlDevice), uint32(m.Cards[0].Major), ControlMinor)
}

func makeNode(path string, major, minor uint32) error {
	if err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(major, minor))); err != nil {
		return fmt.Errorf("make device node %s: %w", path, err)
	}
	return nil
}
