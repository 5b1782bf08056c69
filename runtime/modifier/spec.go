package modifier

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// object is a JSON object whose untouched parts stay as they are, byte for byte.
type object map[string]json.RawMessage

// child returns the object at a key, empty if there is none.
func (o object) child(key string) (object, error) {
	out := object{}
	if err := o.read(key, &out); err != nil {
		return nil, err
	}
	if out == nil { // null
		out = object{}
	}
	return out, nil
}

func (o object) read(key string, into any) error {
	raw, ok := o[key]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func (o object) write(key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	o[key] = raw
	return nil
}

// add appends to the list at a key.
func add[T any](o object, key string, items []T) error {
	if len(items) == 0 {
		return nil
	}
	var list []json.RawMessage
	if err := o.read(key, &list); err != nil {
		return err
	}
	for _, item := range items {
		raw, err := json.Marshal(item)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		list = append(list, raw)
	}
	return o.write(key, list)
}

// view is what has to be known of a spec to decide about it.
type view struct {
	Annotations map[string]string `json:"annotations"`
	Root        struct {
		Path string `json:"path"`
	} `json:"root"`
	Process struct {
		Env          []string `json:"env"`
		Capabilities struct {
			Bounding []string `json:"bounding"`
		} `json:"capabilities"`
	} `json:"process"`
	Mounts []struct {
		Destination string `json:"destination"`
	} `json:"mounts"`
	Linux struct {
		CgroupsPath string              `json:"cgroupsPath"`
		Devices     []specs.LinuxDevice `json:"devices"`
		Resources   struct {
			Devices []specs.LinuxDeviceCgroup `json:"devices"`
		} `json:"resources"`
	} `json:"linux"`
}

// env returns the value of a variable. An engine that puts an image's and a user's value one after the
// other leaves it to the program which of them counts, so two values are none.
func (v *view) env(name string) (string, error) {
	value, found := "", false
	for _, entry := range v.Process.Env {
		got, ok := strings.CutPrefix(entry, name+"=")
		if !ok {
			continue
		}
		if found && got != value {
			return "", fmt.Errorf("%s has two values, %q and %q", name, value, got)
		}
		value, found = got, true
	}
	return value, nil
}

// edits are what is added to a spec.
type edits struct {
	devices     []specs.LinuxDevice
	rules       []specs.LinuxDeviceCgroup
	mounts      []specs.Mount
	libraryPath string // a folder for LD_LIBRARY_PATH; empty is none
}

const libraryPathVariable = "LD_LIBRARY_PATH"

func (e *edits) apply(spec object) error {
	linux, err := spec.child("linux")
	if err != nil {
		return err
	}
	resources, err := linux.child("resources")
	if err != nil {
		return err
	}
	process, err := spec.child("process")
	if err != nil {
		return err
	}
	var env []string
	if err := process.read("env", &env); err != nil {
		return err
	}
	if e.libraryPath != "" {
		if err := process.write("env", withLibraryPath(env, e.libraryPath)); err != nil {
			return err
		}
		if err := spec.write("process", process); err != nil {
			return err
		}
	}
	if len(e.devices) > 0 || len(e.rules) > 0 {
		if err := add(resources, "devices", e.rules); err != nil {
			return err
		}
		if err := linux.write("resources", resources); err != nil {
			return err
		}
		if err := add(linux, "devices", e.devices); err != nil {
			return err
		}
		if err := spec.write("linux", linux); err != nil {
			return err
		}
	}
	return add(spec, "mounts", e.mounts)
}

// withLibraryPath puts a folder behind those the container has, whose own libraries keep going first. An
// empty value must not become an empty part, which the loader takes for the working directory.
func withLibraryPath(env []string, folder string) []string {
	out, found := make([]string, 0, len(env)+1), false
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, libraryPathVariable+"="); ok {
			found = true
			if value == "" {
				entry += folder
			} else {
				entry += ":" + folder
			}
		}
		out = append(out, entry)
	}
	if !found {
		out = append(out, libraryPathVariable+"="+folder)
	}
	return out
}
