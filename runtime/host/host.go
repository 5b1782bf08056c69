package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/topscloud/topscloud/eflib"
)

// Host is a host as seen by what prepares containers on it.
type Host struct {
	// Root is where the host's /sys, /dev, /etc and /usr are.
	Root string
	// EngineRoot is the same place as an engine sees it; empty is Root. A pod that has the host at /host
	// writes paths for an engine that has it at /.
	EngineRoot string
	// Files say what belongs to a container with cards.
	Files Files
	// Cards lists the cards.
	Cards eflib.Inventory
	// Stat returns the node at a path of the host; StatNode where it is nil. Tests without the right to
	// make device nodes have their own.
	Stat func(path string) (Node, error)
}

// Node is a character device of the host.
type Node struct {
	// Path is the node's path, on the host and in a container.
	Path         string
	Major, Minor uint32
	Mode         fs.FileMode // permissions
	UID, GID     uint32
}

// Card is a card and its node.
type Card struct {
	Device eflib.Device
	Node   Node
}

// List returns the cards of the host whose nodes are as they should be, sorted by minor. As with an
// eflib.Inventory, cards and an error about others may come together.
func (h *Host) List(ctx context.Context) ([]Card, error) {
	devices, err := h.Cards.Devices(ctx)
	errs := []error{err}
	var cards []Card
	for _, device := range devices {
		node, err := h.node(h.Files.Card + strconv.Itoa(device.Minor))
		if err == nil && (node.Major != device.Major || node.Minor != device.DevMinor) {
			err = fmt.Errorf("%s is %d:%d, and the driver says %d:%d", node.Path, node.Major, node.Minor, device.Major, device.DevMinor)
		}
		if err != nil {
			errs = append(errs, &eflib.DeviceError{Entry: device.Entry(), Err: err})
			continue
		}
		cards = append(cards, Card{Device: device, Node: node})
	}
	return cards, errors.Join(errs...)
}

// Control returns the nodes every container with a card has.
func (h *Host) Control() ([]Node, error) {
	var nodes []Node
	for _, path := range h.Files.Control {
		node, err := h.node(path)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

func (h *Host) node(path string) (Node, error) {
	stat := h.Stat
	if stat == nil {
		stat = StatNode
	}
	node, err := stat(filepath.Join(h.Root, path))
	if err != nil {
		return Node{}, err
	}
	node.Path = path
	return node, nil
}

// StatNode reads the character device at a path.
func StatNode(path string) (Node, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return Node{}, fmt.Errorf("stat %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return Node{}, fmt.Errorf("%s is no character device", path)
	}
	dev := uint64(st.Rdev)
	return Node{Path: path, Major: unix.Major(dev), Minor: unix.Minor(dev),
		Mode: fs.FileMode(st.Mode & 0o777), UID: st.Uid, GID: st.Gid}, nil
}

// EnginePath returns a path of the host as an engine sees it.
func (h *Host) EnginePath(path string) string {
	if h.EngineRoot != "" {
		return filepath.Join(h.EngineRoot, path)
	}
	return filepath.Join(h.Root, path)
}

// charLink is where systemd looks a device up by its numbers.
func (h *Host) charLink(n Node) string {
	return filepath.Join(h.Root, "dev/char", fmt.Sprintf("%d:%d", n.Major, n.Minor))
}

// CharLink says what is wrong with the link in /dev/char of a node, nil if nothing is. When systemd
// rewrites the device rules of a container's scope (daemon-reload does), it finds devices by these links,
// and a card without one is lost to the container then.
func (h *Host) CharLink(n Node) error {
	target, err := os.Readlink(h.charLink(n))
	if err != nil {
		return err
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join("/dev/char", target)
	}
	if filepath.Clean(target) != n.Path {
		return fmt.Errorf("/dev/char/%d:%d leads to %s: want %s", n.Major, n.Minor, target, n.Path)
	}
	return nil
}

// MakeCharLink makes the link in /dev/char of a node unless it is there and right.
func (h *Host) MakeCharLink(n Node) error {
	if h.CharLink(n) == nil {
		return nil
	}
	link := h.charLink(n)
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	relative, err := filepath.Rel("/dev/char", n.Path)
	if err != nil {
		return err
	}
	// Two containers that start together may both come here: each moves its own link into place.
	temp := fmt.Sprintf("%s.%d", link, os.Getpid())
	if err := os.Symlink(relative, temp); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Rename(temp, link); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}
