package containerd

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/engine"
)

// ConfigPath is containerd's configuration.
const ConfigPath = "/etc/containerd/config.toml"

// DropInName is our file in a folder that containerd imports. It starts with a number so that it counts
// after the others.
const DropInName = "99-enflame.toml"

// newVersion is that of a configuration we make: both containerd 1 and 2 read it.
const newVersion = 2

const runcType = "io.containerd.runc.v2"

// file is one file of the configuration as it is without us.
type file struct {
	path     string
	old      []byte // nil: no such file
	original string
	gone     bool // without us it would not be there
	tree     tree
	version  int64
}

// plugin is the section of the CRI plugin that has the runtimes.
func plugin(version int64) string {
	switch {
	case version <= 1:
		return "cri"
	case version == 2:
		return "io.containerd.grpc.v1.cri"
	}
	return "io.containerd.cri.v1.runtime"
}

func (f *file) cri() tree { return at(f.tree, "plugins", plugin(f.version)) }

// Configure returns what makes containerd know the runtime.
func Configure(o engine.Options) ([]engine.Change, error) {
	files, err := load(o.Root)
	if err != nil {
		return nil, err
	}
	primary := files[0]
	cri := effective(files)
	if there := at(cri, "containerd", "runtimes", contract.RuntimeName); there != nil {
		// containerd's own migration of a configuration throws comments away, and our marks with them.
		if len(settings(primary.version, cri, o)) == 0 && reflect.DeepEqual(prune(there), prune(inherit(cri, o))) {
			return nil, nil
		}
		return nil, fmt.Errorf("%s: a runtime %q is configured already, and not by this tool: remove it first", primary.path, contract.RuntimeName)
	}
	runtimes := added(cri, o)
	changes := undone(files)
	if dropIn := dropInPath(o.Root, primary); dropIn != "" {
		text, err := renderDropIn(primary.version, cri, runtimes, o)
		if err != nil {
			return nil, err
		}
		old, err := engine.Read(dropIn)
		if err != nil {
			return nil, err
		}
		if old != nil && !strings.HasPrefix(string(old), beginMark) {
			return nil, fmt.Errorf("%s is there already, and not ours", dropIn)
		}
		changes = slices.DeleteFunc(changes, func(c engine.Change) bool { return c.Path == dropIn })
		return engine.Real(append(changes, engine.Change{Path: dropIn, Old: old, New: []byte(text)})), nil
	}
	target := decides(files)
	text, err := edit(target, cri, runtimes, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", target.path, err)
	}
	for i := range changes {
		if changes[i].Path == target.path {
			changes[i].New = []byte(text)
		}
	}
	return engine.Real(changes), nil
}

// Unconfigure returns what makes containerd as it was.
func Unconfigure(o engine.Options) ([]engine.Change, error) {
	files, err := load(o.Root)
	if err != nil {
		return nil, err
	}
	changes := engine.Real(undone(files))
	if len(changes) == 0 && at(effective(files), "containerd", "runtimes", contract.RuntimeName) != nil {
		return nil, fmt.Errorf("%s: a runtime %q is configured, and the marks of this tool are not there: remove it by hand", files[0].path, contract.RuntimeName)
	}
	return changes, nil
}

// SystemdCgroup says whether the default runtime lets systemd manage cgroups, and whether it says so.
func SystemdCgroup(root string) (systemd, known bool, err error) {
	files, err := load(root)
	if err != nil {
		return false, false, err
	}
	systemd, known = at(effective(files), "containerd", "runtimes", defaultRuntime(effective(files)), "options")["SystemdCgroup"].(bool)
	return systemd, known, nil
}

// CDIEnabled says whether containerd resolves CDI devices, as far as its files say; true where there are
// none, since nothing is known then. Ours are part of them.
func CDIEnabled(root string) (bool, error) {
	files, err := load(root)
	if err != nil {
		return false, err
	}
	if files[0].old == nil {
		return true, nil
	}
	for _, f := range files {
		if err := toml.Unmarshal(f.old, &f.tree); err != nil {
			return false, fmt.Errorf("%s: %w", f.path, err)
		}
	}
	on, said := effective(files)["enable_cdi"].(bool)
	return on || !said && files[0].version >= 3, nil
}

// load reads the configuration and what it imports, in the order in which they count.
func load(root string) ([]*file, error) {
	var files []*file
	pending := []string{filepath.Join(root, ConfigPath)}
	for len(pending) > 0 {
		path := pending[0]
		pending = pending[1:]
		if slices.ContainsFunc(files, func(f *file) bool { return f.path == path }) {
			continue
		}
		f, err := parse(path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		for _, pattern := range imports(f) {
			matches, err := filepath.Glob(rooted(root, f.path, pattern))
			if err != nil {
				return nil, fmt.Errorf("%s: imports: %w", path, err)
			}
			pending = append(pending, matches...)
		}
	}
	return files, nil
}

func parse(path string) (*file, error) {
	text, err := engine.Read(path)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, old: text, version: 1}
	f.original, f.gone = undo(string(text))
	if err := toml.Unmarshal([]byte(f.original), &f.tree); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.tree == nil {
		f.tree = tree{}
	}
	switch version, named := f.tree["version"].(int64); {
	case text == nil || f.gone:
		f.version = newVersion
	case named:
		f.version = version
	}
	if f.version > 4 {
		return nil, fmt.Errorf("%s: version %d: want 1 to 4", path, f.version)
	}
	return f, nil
}

func imports(f *file) []string {
	list, _ := f.tree["imports"].([]any)
	var out []string
	for _, item := range list {
		if pattern, ok := item.(string); ok {
			out = append(out, pattern)
		}
	}
	return out
}

// rooted returns where a pattern of a file leads; relative ones start at the file's folder.
func rooted(root, from, pattern string) string {
	if filepath.IsAbs(pattern) {
		return filepath.Join(root, pattern)
	}
	return filepath.Join(filepath.Dir(from), pattern)
}

// effective returns the section of the CRI plugin as containerd puts it together: containerd 1 takes the
// last file's, containerd 2 merges all.
func effective(files []*file) tree {
	var out tree
	for _, f := range files {
		section := f.cri()
		switch {
		case section == nil:
		case files[0].version >= 3:
			out = merge(out, section)
		default:
			out = section
		}
	}
	return out
}

// decides returns the file whose section of the CRI plugin counts.
func decides(files []*file) *file {
	target := files[0]
	if target.version >= 3 {
		return target
	}
	for _, f := range files {
		if f.cri() != nil {
			target = f
		}
	}
	return target
}

// dropInPath returns the path of a file of our own, "" where there can be none.
func dropInPath(root string, primary *file) string {
	if primary.version < 3 {
		return ""
	}
	for _, pattern := range imports(primary) {
		path := rooted(root, primary.path, pattern)
		if ok, err := filepath.Match(filepath.Base(path), DropInName); err == nil && ok && strings.Contains(filepath.Base(path), "*") {
			return filepath.Join(filepath.Dir(path), DropInName)
		}
	}
	return ""
}

func undone(files []*file) []engine.Change {
	changes := make([]engine.Change, len(files))
	for i, f := range files {
		changes[i] = engine.Change{Path: f.path, Old: f.old, New: []byte(f.original)}
		if f.old == nil || f.gone {
			changes[i].New = nil
		}
	}
	return changes
}

func defaultRuntime(cri tree) string {
	if name, ok := at(cri, "containerd")["default_runtime_name"].(string); ok && name != "" {
		return name
	}
	return "runc"
}

// inherit returns our runtime's table: the default runtime's with another binary.
func inherit(cri tree, o engine.Options) tree {
	out := tree{"runtime_type": runcType}
	options := tree{}
	if base := at(cri, "containerd", "runtimes", defaultRuntime(cri)); base["runtime_type"] == runcType {
		out = merge(nil, base)
		options = merge(nil, at(base, "options"))
	}
	options["BinaryName"] = o.RuntimePath
	if o.SystemdCgroup != nil {
		options["SystemdCgroup"] = *o.SystemdCgroup
	}
	out["options"] = options
	return out
}

// added returns the runtimes that we add, by name. containerd 1 takes a table of runtimes for all there are:
// ours alone would take its own default away, and no pod would start any more.
func added(cri tree, o engine.Options) tree {
	out := tree{contract.RuntimeName: inherit(cri, o)}
	if len(at(cri, "containerd", "runtimes")) == 0 {
		out["runc"] = tree{"runtime_type": runcType}
	}
	return out
}

// renderRuntimes writes runtimes of a version of the configuration.
func renderRuntimes(out *strings.Builder, version int64, runtimes tree) error {
	for i, name := range slices.Sorted(maps.Keys(runtimes)) {
		if i > 0 {
			out.WriteString("\n")
		}
		if err := render(out, append(runtimesOf(version), name), runtimes[name].(tree)); err != nil {
			return err
		}
	}
	return nil
}

func runtimesOf(version int64) []string {
	return []string{"plugins", plugin(version), "containerd", "runtimes"}
}

// settings returns the single keys that have to be others: table, key and value.
func settings(version int64, cri tree, o engine.Options) (list []setting) {
	section := []string{"plugins", plugin(version)}
	// Before version 3 the switch is off unless it says on; later it is on unless it says off.
	if on, said := cri["enable_cdi"].(bool); version <= 2 && !on || version > 2 && said && !on {
		list = append(list, setting{section, "enable_cdi", true})
	}
	if o.SetAsDefault && defaultRuntime(cri) != contract.RuntimeName {
		list = append(list, setting{append(slices.Clone(section), "containerd"), "default_runtime_name", contract.RuntimeName})
	}
	return list
}

type setting struct {
	table []string
	key   string
	value any
}

// edit returns the text of a file with our runtime in it.
func edit(f *file, cri, runtimes tree, o engine.Options) (string, error) {
	var tables strings.Builder
	made := f.old == nil || f.gone
	if made {
		fmt.Fprintf(&tables, "version = %d\n\n", newVersion)
	}
	text, list := f.original, settings(f.version, cri, o)
	for _, s := range list {
		value, err := literal(s.value)
		if err != nil {
			return "", err
		}
		done := false
		if text, done = set(text, s.table, s.key, value); done {
			continue
		}
		if err := render(&tables, s.table, tree{s.key: s.value}); err != nil {
			return "", err
		}
		tables.WriteString("\n")
	}
	if err := renderRuntimes(&tables, f.version, runtimes); err != nil {
		return "", err
	}
	text = block(text, tables.String(), made)
	return text, verify(f, text, runtimes, list)
}

// verify reads the edited text and makes sure that it says what it should and nothing else. Texts can be
// written in ways that edits by lines do not reach, such as tables within a line.
func verify(f *file, text string, runtimes tree, list []setting) error {
	var got tree
	if err := toml.Unmarshal([]byte(text), &got); err != nil {
		return fmt.Errorf("this way of writing cannot be edited: %w", err)
	}
	cannot := errors.New("this way of writing cannot be edited: write the CRI plugin's settings as tables with headers")
	there := at(got, runtimesOf(f.version)...)
	for name, runtime := range runtimes {
		if !reflect.DeepEqual(prune(there)[name], any(prune(runtime.(tree)))) {
			return cannot
		}
		delete(there, name)
	}
	for _, s := range list {
		table := at(got, s.table...)
		if table == nil || table[s.key] != s.value {
			return cannot
		}
		delete(table, s.key)
		if was, ok := at(f.tree, s.table...)[s.key]; ok {
			table[s.key] = was
		}
	}
	if f.old == nil || f.gone {
		delete(got, "version")
	}
	if !reflect.DeepEqual(prune(got), prune(f.tree)) {
		return cannot
	}
	return nil
}

// renderDropIn returns the text of a file of our own.
func renderDropIn(version int64, cri, runtimes tree, o engine.Options) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "version = %d\n\n", version)
	for _, s := range settings(version, cri, o) {
		if err := render(&out, s.table, tree{s.key: s.value}); err != nil {
			return "", err
		}
		out.WriteString("\n")
	}
	if err := renderRuntimes(&out, version, runtimes); err != nil {
		return "", err
	}
	return block("", out.String(), true), nil
}
