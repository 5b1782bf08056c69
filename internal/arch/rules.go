package arch

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the module whose packages the rules are about.
const Module = "github.com/topscloud/topscloud"

// Package is what the rules need to know of a package; the names are those of go list -json.
type Package struct {
	ImportPath   string
	Dir          string
	Name         string
	Imports      []string
	TestImports  []string
	XTestImports []string
	// Deps are all packages it links in, test files left out.
	Deps []string
}

// place is where a package stands. Imports point to a lower level, or stay in the room.
type place struct {
	room  string
	level int
}

// places maps folders to places, the longest matching folder first. Rooms that are not built yet have
// their place already.
var places = []struct {
	folder string
	place
}{
	{"topology", place{"topology", 0}},
	{"internal/contract", place{"contract", 0}},
	{"internal/hostfs", place{"hostfs", 0}},
	{"internal/app", place{"app", 0}},
	{"operator/api", place{"operator", 0}},
	{"manifests", place{"manifests", 1}},
	{"eflib", place{"eflib", 1}},
	{"gcushare/share", place{"gcushare", 2}},
	{"gcushare/placement", place{"gcushare", 2}},
	{"gcushare/ledger", place{"gcushare", 2}},
	{"deviceplugin/kubelet", place{"deviceplugin", 2}},
	{"deviceplugin/health", place{"deviceplugin", 2}},
	{"scheduler", place{"scheduler", 3}},
	{"gcushare/plugin", place{"gcushare", 3}},
	{"deviceplugin/plugin", place{"deviceplugin", 3}},
	{"deviceplugin/agent", place{"deviceplugin", 3}},
	{"runtime", place{"runtime", 3}},
	{"nfd", place{"nfd", 3}},
	{"operator", place{"operator", 3}},
	{"exporter", place{"exporter", 3}},
	{"scheduler/cmd", place{"scheduler", 4}},
	{"deviceplugin/cmd", place{"deviceplugin", 4}},
	{"runtime/cmd", place{"runtime", 4}},
	{"nfd/cmd", place{"nfd", 4}},
	{"operator/cmd", place{"operator", 4}},
	{"exporter/cmd", place{"exporter", 4}},
	{"sandbox", place{"sandbox", top}},
	{"test", place{"test", top}},
	{"hack", place{"hack", top}},
	{"internal/arch", place{"arch", top}},
	{"docs", place{"docs", top}}, // tests of the documents
}

// top is the level of what may import anything and is imported by nothing below it.
const top = 5

// bridges are the imports that the map forbids and the design wants: one process serves both plugins.
var bridges = []struct{ from, to string }{
	{"deviceplugin/agent", "gcushare/plugin"},
}

// link keeps a library out of packages, or in the only packages that may have it.
type link struct {
	library string
	// only lists the folders that may link the library; never those that may not. One of them is set.
	only, never []string
}

var links = []link{
	{library: "k8s.io/kubernetes", only: []string{"scheduler/cmd", "test"}},
	{library: "sigs.k8s.io/controller-runtime", only: []string{"operator", "test"}},
	{library: "k8s.io/client-go", never: []string{
		"topology", "eflib", "gcushare/share", "gcushare/placement", "gcushare/ledger", "runtime",
		"internal/contract", "internal/hostfs",
	}},
	// What links it is not a static program any more.
	{library: "github.com/ebitengine/purego", never: []string{
		"topology", "eflib/sim", "eflib/sysfs", "gcushare/share", "gcushare/placement", "gcushare/ledger", "runtime",
		"internal/contract", "internal/hostfs",
	}},
}

// mayStartProcesses lists the folders that may import os/exec.
var mayStartProcesses = []string{"runtime/oci", "eflib/efsmi", "eflib/libefml/libefmltest", "sandbox", "hack", "test"}

// standardLibraryOnly lists the folders that link nothing but the standard library and themselves.
var standardLibraryOnly = []string{"topology", "internal/contract"}

// MaxMainLines bounds the main.go of a command: a table of contents, no logic.
const MaxMainLines = 60

// Check returns every broken rule, one line each, in the order of the packages.
func Check(packages []Package) []string {
	var out []string
	for _, p := range packages {
		folder, ours := folderOf(p.ImportPath)
		if !ours {
			continue
		}
		at, known := placeOf(folder)
		if !known {
			out = append(out, fmt.Sprintf("%s: not on the map of rooms; give it a place in internal/arch and docs/architecture.md", folder))
			continue
		}
		out = append(out, checkRooms(folder, at, p)...)
		out = append(out, checkLinks(folder, p)...)
		if slices.Contains(p.Imports, "os/exec") && !within(folder, mayStartProcesses) {
			out = append(out, fmt.Sprintf("%s: imports os/exec, which is for %s", folder, strings.Join(mayStartProcesses, ", ")))
		}
	}
	return out
}

func checkRooms(folder string, at place, p Package) []string {
	var out []string
	if at.level == top {
		return nil
	}
	imports := slices.Concat(p.Imports, p.TestImports, p.XTestImports)
	slices.Sort(imports)
	for _, path := range slices.Compact(imports) {
		target, ours := folderOf(path)
		if !ours || target == folder || bridged(folder, target) {
			continue
		}
		to, known := placeOf(target)
		switch {
		case !known: // told where the target itself is looked at
		case to.level > at.level:
			out = append(out, fmt.Sprintf("%s (level %d) imports %s (level %d): imports point down only", folder, at.level, target, to.level))
		case to.level < at.level && to.level <= 2, to.room == at.room:
		default:
			out = append(out, fmt.Sprintf("%s (level %d) imports %s (level %d) of another room", folder, at.level, target, to.level))
		}
	}
	return out
}

func checkLinks(folder string, p Package) []string {
	var out []string
	for _, l := range links {
		if l.only != nil && within(folder, l.only) || l.never != nil && !within(folder, l.never) {
			continue
		}
		if i := slices.IndexFunc(p.Deps, func(dep string) bool { return isBelow(dep, l.library) }); i >= 0 {
			out = append(out, fmt.Sprintf("%s: links %s, which is not for it", folder, p.Deps[i]))
		}
	}
	if !within(folder, standardLibraryOnly) {
		return out
	}
	for _, dep := range p.Deps {
		// A path of the standard library has no dot in its first element.
		first, _, _ := strings.Cut(dep, "/")
		if target, ours := folderOf(dep); strings.Contains(first, ".") && !(ours && sameRoom(folder, target)) {
			out = append(out, fmt.Sprintf("%s: links %s, and is of the standard library only", folder, dep))
		}
	}
	return out
}

// folderOf returns the folder of one of the module's packages.
func folderOf(importPath string) (string, bool) {
	return strings.CutPrefix(importPath, Module+"/")
}

func placeOf(folder string) (place, bool) {
	best, found := place{}, ""
	for _, p := range places {
		if isBelow(folder, p.folder) && len(p.folder) > len(found) {
			best, found = p.place, p.folder
		}
	}
	return best, found != ""
}

func sameRoom(a, b string) bool {
	pa, okA := placeOf(a)
	pb, okB := placeOf(b)
	return okA && okB && pa.room == pb.room
}

func bridged(from, to string) bool {
	for _, b := range bridges {
		if isBelow(from, b.from) && isBelow(to, b.to) {
			return true
		}
	}
	return false
}

func within(folder string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return isBelow(folder, f) })
}

// isBelow says whether a path is root or lies below it.
func isBelow(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}
