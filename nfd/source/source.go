package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/efsmi"
	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/eflib/sysfs"
	"github.com/topscloud/topscloud/nfd/labels"
	"github.com/topscloud/topscloud/topology"
)

// The places of Options.Order, besides those of package eflib/source.
const (
	// EfsmiJSON is efsmi -q --json-format. Unproven: see the package comment.
	EfsmiJSON = "efsmi-json"
)

// Places returns what may stand in Options.Order.
func Places() []string {
	return []string{source.Auto, source.Libefml, EfsmiJSON, source.Efsmi, source.Sysfs, source.Sim}
}

// defaultOrder is what "auto" and an empty order mean.
var defaultOrder = []string{source.Libefml, source.Efsmi, source.Sysfs}

// Options say where to read.
type Options struct {
	// Order lists places, the first that can be opened is used. Empty is "auto": libefml, efsmi, sysfs.
	Order []string
	// HostRoot is where the host's files are; empty is "/".
	HostRoot string
	// Library and Tool are the files of libefml and efsmi; empty searches for them.
	Library, Tool string
	// Machine, Node and ControlFile describe the made-up machine of place sim.
	Machine, Node, ControlFile string
	// Interval is how often Watch looks, 10 s when 0.
	Interval time.Duration
	// Timeout bounds one Read, 30 s when 0: a slow driver takes 20.
	Timeout time.Duration
}

const (
	defaultInterval = 10 * time.Second
	defaultTimeout  = 30 * time.Second
	// accelerators starts the PCI class of a card.
	accelerators = "0x12"
	// perCard bounds the question about vGCUs.
	perCard = 3 * time.Second
)

// cards is what the places have in common.
type cards interface {
	eflib.Inventory
	eflib.Telemetry
	Host(ctx context.Context) (eflib.Host, error)
}

// Reader reads one host. It may be shared.
type Reader struct {
	cards
	watcher eflib.Watcher
	name    string
	timeout time.Duration
	// bus says whether a card is on the PCI bus; nil where there is none to look at.
	bus   func() (bool, error)
	close func() error
}

// Open opens the first place of the order that can be opened.
func Open(o Options) (*Reader, error) {
	order, err := o.order()
	if err != nil {
		return nil, err
	}
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	var missing []error
	for _, place := range order {
		r, err := open(place, o)
		if err == nil {
			r.timeout = o.Timeout
			return r, nil
		}
		missing = append(missing, err)
	}
	return nil, errors.Join(missing...)
}

func (o Options) order() ([]string, error) {
	var order []string
	for _, place := range o.Order {
		if !slices.Contains(Places(), place) {
			return nil, fmt.Errorf("device source %q: want some of %s", place, strings.Join(Places(), ", "))
		}
		if place == source.Auto {
			order = append(order, defaultOrder...)
			continue
		}
		order = append(order, place)
	}
	if len(order) == 0 {
		order = defaultOrder
	}
	simulated := slices.Contains(order, source.Sim)
	if simulated && len(order) > 1 {
		return nil, errors.New("device source sim: want it alone, a made-up machine stands for no other")
	}
	if !simulated && (o.Machine != "" || o.ControlFile != "") {
		return nil, fmt.Errorf("device source %s: machine and control file are for source sim", strings.Join(order, ","))
	}
	return order, nil
}

func open(place string, o Options) (*Reader, error) {
	if place == EfsmiJSON {
		return openJSON(o)
	}
	so := source.Options{Source: place, HostRoot: o.HostRoot, Interval: o.Interval}
	switch place {
	case source.Sim:
		so.Machine, so.ControlFile, so.Node = o.Machine, o.ControlFile, o.Node
	case source.Libefml:
		so.Library = o.Library
	case source.Efsmi:
		so.Tool = o.Tool
	}
	opened, err := source.Open(so)
	if err != nil {
		return nil, err
	}
	r := &Reader{cards: opened, watcher: opened, name: opened.String(), close: opened.Close}
	if place != source.Sim {
		r.bus = onBus(hostFS(o.HostRoot))
	}
	return r, nil
}

func openJSON(o Options) (*Reader, error) {
	tool, err := o.Tool, error(nil)
	if tool == "" {
		if tool, err = efsmi.Find(o.HostRoot); err != nil {
			return nil, fmt.Errorf("device source %s: %w", EfsmiJSON, err)
		}
	}
	return withTool(hostFS(o.HostRoot), jsonRunner(efsmi.Command(tool)), "efsmi --json-format ("+tool+")", o.Interval), nil
}

func withTool(host fs.FS, run efsmi.Runner, name string, interval time.Duration) *Reader {
	both := source.Join(sysfs.New(host), efsmi.New(run))
	return &Reader{cards: both, watcher: eflib.NewPoller(both, interval, nil), name: "sysfs and " + name, timeout: defaultTimeout, bus: onBus(host)}
}

func hostFS(root string) fs.FS {
	if root == "" {
		root = "/"
	}
	return os.DirFS(root)
}

// String names the place, for a log line at the start.
func (r *Reader) String() string { return r.name }

// Close gives up what Open opened.
func (r *Reader) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

// Watch implements eflib.Watcher.
func (r *Reader) Watch(ctx context.Context) <-chan eflib.State { return r.watcher.Watch(ctx) }

// Read reads the host once. Besides facts it may return problems: what was wrong with single cards, for a log
// line. The error means that nothing is known.
func (r *Reader) Read(ctx context.Context) (facts labels.Facts, problems, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	devices, problem := r.Devices(ctx)
	single, only := eflib.DeviceErrors(problem)
	if len(devices) == 0 && !only {
		if gone, unknown := r.gone(problem); gone && unknown == nil {
			return labels.Facts{}, nil, nil
		} else if unknown != nil {
			problem = errors.Join(problem, unknown)
		}
		return labels.Facts{}, nil, problem
	}
	unread := map[string]bool{}
	for _, e := range single {
		if !errors.Is(e, eflib.ErrUnknownModel) && !errors.Is(e, eflib.ErrUnknownMemory) {
			unread[e.Entry] = true
		}
	}
	facts = factsOf(devices, unread, !only)
	r.readHost(ctx, &facts)
	r.readVirtual(ctx, devices, &facts)
	return facts, problem, nil
}

// gone says whether a host whose driver is not loaded has no card either.
func (r *Reader) gone(problem error) (bool, error) {
	if r.bus == nil || !errors.Is(problem, eflib.ErrDriverNotLoaded) {
		return false, nil
	}
	there, err := r.bus()
	return !there && err == nil, err
}

// factsOf returns what devices tell. Unread lists the entries that could not be read in full this time, all
// says that none of them was asked.
func factsOf(devices []eflib.Device, unread map[string]bool, all bool) labels.Facts {
	var f labels.Facts
	for _, d := range devices {
		f.Cards = append(f.Cards, labels.Card{
			Model: d.Model, Product: d.Product, Family: d.Family, MemoryMiB: d.MemoryMiB, Unread: all || unread[d.Entry()],
		})
		delete(unread, d.Entry())
	}
	for entry := range unread {
		// A card that did not say where it is ("index 3") is one of those above.
		if _, err := topology.ParseAddress(entry); err == nil {
			f.Silent++
		}
	}
	return f
}

func (r *Reader) readHost(ctx context.Context, f *labels.Facts) {
	host, err := r.Host(ctx)
	f.Driver = labels.Text{Value: host.DriverVersion, Unread: err != nil}
	f.Machine = labels.Text{Value: host.Product, Unread: err != nil}
}

// readVirtual asks the cards into how many vGCUs they are divided. A place that cannot tell has none.
func (r *Reader) readVirtual(ctx context.Context, devices []eflib.Device, f *labels.Facts) {
	const want = eflib.FieldVirtualization | eflib.FieldVirtualDevices
	samples, _ := eflib.SampleAll(ctx, r.cards, devices, want, perCard) // the readings say why they are not there
	for i, s := range samples {
		card := &f.Cards[i]
		mode, err := s.Virtualization.Get()
		if err != nil {
			card.VirtualUnread = !errors.Is(err, eflib.ErrNotSupported)
			continue
		}
		if mode != eflib.VirtVGCU {
			continue
		}
		parts, err := s.VirtualDevices.Get()
		if err != nil {
			card.VirtualUnread = !errors.Is(err, eflib.ErrNotSupported)
			continue
		}
		for _, p := range parts {
			m, err := p.Memory.Get()
			card.Virtual = append(card.Virtual, labels.Virtual{
				MemoryMiB: m.TotalBytes >> 20, Unread: err != nil && !errors.Is(err, eflib.ErrNotSupported),
			})
		}
	}
}

// onBus looks for a card on the PCI bus, whether or not there is a driver.
func onBus(host fs.FS) func() (bool, error) {
	return func() (bool, error) {
		entries, err := fs.ReadDir(host, topology.PCIDevices)
		if errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("%s cannot be seen: %w", topology.PCIDevices, err)
		}
		if err != nil {
			return false, err
		}
		vendor := fmt.Sprintf("0x%04x", eflib.VendorID)
		var errs []error
		for _, e := range entries {
			folder := path.Join(topology.PCIDevices, e.Name())
			if is, err := fs.ReadFile(host, path.Join(folder, "vendor")); err != nil || strings.TrimSpace(string(is)) != vendor {
				errs = append(errs, err)
				continue
			}
			class, err := fs.ReadFile(host, path.Join(folder, "class"))
			errs = append(errs, err)
			if strings.HasPrefix(string(class), accelerators) {
				return true, nil
			}
		}
		return false, errors.Join(errs...)
	}
}
