package plugin

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
)

// cdiVersion is the oldest version of the format with all that is written here.
const cdiVersion = "0.5.0"

// ticketPattern is what newTicket makes: 130 random bits or so.
var ticketPattern = regexp.MustCompile(`^t-[a-z2-7]{26}$`)

func newTicket() string { return "t-" + strings.ToLower(rand.Text()) }

// tickets are the CDI files of the node's tickets.
type tickets struct {
	dir, vendor, class string
	// control is the path of the control device as this process sees it.
	control string
	cache   *cdi.Cache
}

func newTickets(dir, hostRoot string, names *contract.Names) (*tickets, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("folder for CDI files: %w", err)
	}
	// It watches the folder, as an engine's does: what it resolves the engine is about to resolve.
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dir), cdi.WithAutoRefresh(true))
	if err != nil {
		return nil, fmt.Errorf("watch CDI files: %w", err)
	}
	return &tickets{
		dir: dir, vendor: names.Domain, class: names.CDIClass(), cache: cache,
		control: filepath.Join("/", hostRoot, contract.ControlDevice),
	}, nil
}

func (t *tickets) close() error { return t.cache.Configure(cdi.WithAutoRefresh(false)) }

// qualified returns the name under which an engine knows a ticket.
func (t *tickets) qualified(name string) string { return t.vendor + "/" + t.class + "=" + name }

// nameOf returns the ticket in a qualified name, false if it is none of ours.
func (t *tickets) nameOf(qualified string) (string, bool) {
	name, ok := strings.CutPrefix(qualified, t.vendor+"/"+t.class+"=")
	return name, ok && ticketPattern.MatchString(name)
}

func (t *tickets) prefix() string { return t.vendor + "-" + t.class + "-" }

func (t *tickets) path(name string) string { return filepath.Join(t.dir, t.prefix()+name+".json") }

// write makes a ticket's file. One that is there already must say the same: files never change.
func (t *tickets) write(name string, cards []contract.CardAllocation, devices map[int]eflib.Device) error {
	text, err := t.spec(name, cards, devices)
	if err != nil {
		return err
	}
	path := t.path(name)
	there, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(there, text):
		return nil
	case err == nil:
		return fmt.Errorf("%s is there and says something else", path)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read %s: %w", path, err)
	}
	return WriteFile(path, text, 0o644)
}

func (t *tickets) spec(name string, cards []contract.CardAllocation, devices map[int]eflib.Device) ([]byte, error) {
	var nodes []*specs.DeviceNode
	var minors, sizes []string
	for _, c := range cards {
		d, ok := devices[c.Minor]
		if !ok {
			return nil, fmt.Errorf("card %d is not here", c.Minor)
		}
		path := eflib.NodePath(c.Minor)
		node := &specs.DeviceNode{Path: path, HostPath: d.Node, Permissions: "rw"}
		if node.HostPath == "" {
			node.HostPath = path
		}
		if d.Major != 0 { // else the engine looks at the host's node
			node.Type, node.Major, node.Minor = "c", int64(d.Major), int64(d.DevMinor)
		}
		nodes = append(nodes, node)
		minors = append(minors, strconv.Itoa(c.Minor))
		sizes = append(sizes, strconv.FormatInt(c.MemoryMiB, 10))
	}
	nodes = append(nodes, t.controlNode())
	text, err := json.Marshal(specs.Spec{
		Version: cdiVersion, Kind: t.vendor + "/" + t.class,
		Devices: []specs.Device{{Name: name, ContainerEdits: specs.ContainerEdits{
			Env: []string{
				contract.EnvVisibleDevices + "=" + strings.Join(minors, ","),
				contract.EnvUsableMemory + "=" + strings.Join(sizes, ","),
			},
			DeviceNodes: nodes,
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode CDI file: %w", err)
	}
	return append(text, '\n'), nil
}

// controlNode describes the control device. With its numbers an engine makes it without a look at the host's
// /dev, as it does for cards.
func (t *tickets) controlNode() *specs.DeviceNode {
	node := &specs.DeviceNode{Path: contract.ControlDevice, HostPath: contract.ControlDevice, Permissions: "rw"}
	var st unix.Stat_t
	if err := unix.Stat(t.control, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR {
		node.Type, node.Major, node.Minor = "c", int64(unix.Major(st.Rdev)), int64(unix.Minor(st.Rdev))
	}
	return node
}

// resolve waits until the cache knows all tickets.
func (t *tickets) resolve(ctx context.Context, names []string) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		missing := ""
		for _, name := range names {
			if t.cache.GetDevice(t.qualified(name)) == nil {
				missing = name
			}
		}
		if missing == "" {
			return nil
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return fmt.Errorf("ticket %s cannot be resolved: %w", missing, errors.Join(ctx.Err(), errors.Join(t.cache.GetErrors()[t.path(missing)]...)))
		case <-timer.C:
		}
	}
}

// remove deletes tickets' files. The names are never used again, so it does not matter when an engine
// notices.
func (t *tickets) remove(names []string) error {
	var errs []error
	for _, name := range names {
		if err := os.Remove(t.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// files returns the names of all tickets that have a file.
func (t *tickets) files() ([]string, error) {
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), t.prefix())
		if name, json := strings.CutSuffix(name, ".json"); ok && json && ticketPattern.MatchString(name) {
			out = append(out, name)
		}
	}
	return out, nil
}
