package cdi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/specs-go"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/host"
)

// Path returns the file of a host's spec in a folder of the host.
func Path(h *host.Host, dir string) (string, error) {
	names, err := contract.NewNames(h.Files.Resource)
	if err != nil {
		return "", err
	}
	return filepath.Join(h.Root, dir, names.CDIFile()), nil
}

// Result is what Generate did.
type Result struct {
	Path             string
	Changed, Removed bool
	// Devices are the names of the devices in the spec.
	Devices []string
	// LeftOut says which cards could not be looked at and are not in the spec.
	LeftOut error
}

// Generate writes the spec of the host's cards into a folder of the host. With removeLast, the spec of a
// host that has a driver and no card is removed; an error otherwise.
func Generate(ctx context.Context, h *host.Host, dir string, removeLast bool) (Result, error) {
	path, err := Path(h, dir)
	if err != nil {
		return Result{}, err
	}
	r := Result{Path: path}
	cards, err := h.List(ctx)
	if len(cards) == 0 {
		switch {
		case err != nil:
			return r, fmt.Errorf("%s is left as it is: %w: %w", path, errNoCard, err)
		case !removeLast:
			return r, fmt.Errorf("%s is left as it is: the driver is loaded and there is no card", path)
		}
		r.Removed, err = remove(path)
		return r, err
	}
	r.LeftOut = err
	spec, err := NewSpec(h, cards)
	if err != nil {
		return r, fmt.Errorf("%s is left as it is: %w", path, err)
	}
	for _, d := range spec.Devices {
		r.Devices = append(r.Devices, d.Name)
	}
	r.Changed, err = write(path, spec)
	return r, err
}

// Check compares the spec in a folder of the host with the host, and returns what differs. Nothing is the
// good answer.
func Check(ctx context.Context, h *host.Host, dir string) ([]string, error) {
	path, err := Path(h, dir)
	if err != nil {
		return nil, err
	}
	cards, listErr := h.List(ctx)
	if len(cards) == 0 && listErr != nil {
		return nil, fmt.Errorf("%w: %w", errNoCard, listErr)
	}
	file, err := cdi.ReadSpec(path, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if len(cards) == 0 {
			return nil, nil // no cards and no spec fit together
		}
		return []string{path + " is missing"}, nil
	case err != nil:
		return []string{err.Error()}, nil
	case len(cards) == 0:
		return []string{path + " is there, and the host has no card"}, nil
	}
	want, err := NewSpec(h, cards)
	if err != nil {
		return nil, err
	}
	found := differences(file.Spec, want)
	if listErr != nil {
		for line := range strings.SplitSeq(listErr.Error(), "\n") {
			found = append(found, "not looked at: "+line)
		}
	}
	return found, nil
}

func differences(got, want *specs.Spec) []string {
	devices := func(s *specs.Spec) map[string]specs.Device {
		out := map[string]specs.Device{}
		for _, d := range s.Devices {
			out[d.Name] = d
		}
		return out
	}
	var out []string
	have, should := devices(got), devices(want)
	for _, name := range slices.Sorted(maps.Keys(should)) {
		d, ok := have[name]
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("device %s is missing", name))
		case !reflect.DeepEqual(d, should[name]):
			out = append(out, fmt.Sprintf("device %s is another one by now", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, ok := should[name]; !ok {
			out = append(out, fmt.Sprintf("device %s is no more", name))
		}
	}
	if got.Kind != want.Kind {
		out = append(out, fmt.Sprintf("kind is %s: want %s", got.Kind, want.Kind))
	}
	if !reflect.DeepEqual(got.ContainerEdits, want.ContainerEdits) {
		out = append(out, "the control node, tools or libraries are others by now")
	}
	return out
}

// Listed is a device that an engine can resolve.
type Listed struct{ Name, Path string }

// List returns the devices of the host's domain in some folders of the host, as an engine resolves them,
// and what is wrong with files there.
func List(h *host.Host, dirs ...string) ([]Listed, error) {
	names, err := contract.NewNames(h.Files.Resource)
	if err != nil {
		return nil, err
	}
	rooted := make([]string, len(dirs))
	for i, dir := range dirs {
		rooted[i] = filepath.Join(h.Root, dir)
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(rooted...), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil, err
	}
	var out []Listed
	for _, name := range cache.ListDevices() {
		if strings.HasPrefix(name, names.Domain+"/") {
			out = append(out, Listed{Name: name, Path: cache.GetDevice(name).GetSpec().GetPath()})
		}
	}
	var errs []error
	problems := cache.GetErrors()
	for _, path := range slices.Sorted(maps.Keys(problems)) {
		errs = append(errs, problems[path]...)
	}
	return out, errors.Join(errs...)
}
