// Package crio configures CRI-O by a file of its own in /etc/crio/crio.conf.d, which CRI-O merges into its
// configuration. Undoing removes the file. The cgroup manager is CRI-O's as a whole and not a runtime's.
package crio

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/engine"
)

// DropInPath is our file.
const DropInPath = "/etc/crio/crio.conf.d/99-enflame.conf"

const mark = "# Written by enflame-ctk, which removes it with --unconfigure.\n"

// Configure returns what makes CRI-O know the runtime.
func Configure(o engine.Options) ([]engine.Change, error) {
	c, err := present(o.Root)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	out.WriteString(mark)
	if o.SetAsDefault {
		fmt.Fprintf(&out, "\n[crio.runtime]\ndefault_runtime = %q\n", contract.RuntimeName)
	}
	fmt.Fprintf(&out, "\n[crio.runtime.runtimes.%s]\nruntime_path = %q\nruntime_type = \"oci\"\n", contract.RuntimeName, o.RuntimePath)
	c.New = []byte(out.String())
	return engine.Real([]engine.Change{c}), nil
}

// Unconfigure returns what makes CRI-O as it was.
func Unconfigure(o engine.Options) ([]engine.Change, error) {
	c, err := present(o.Root)
	if err != nil {
		return nil, err
	}
	return engine.Real([]engine.Change{c}), nil
}

// present returns the change that takes our file away.
func present(root string) (engine.Change, error) {
	c := engine.Change{Path: filepath.Join(root, DropInPath)}
	var err error
	if c.Old, err = engine.Read(c.Path); err != nil {
		return c, err
	}
	if c.Old != nil && !strings.HasPrefix(string(c.Old), mark) {
		return c, fmt.Errorf("%s is there already, and not ours", c.Path)
	}
	return c, nil
}
