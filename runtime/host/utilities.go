package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Where the vendor's packages put programs and libraries, the first that has a file wins.
var (
	toolDirs    = []string{"/usr/bin", "/usr/local/bin", "/usr/sbin", "/usr/local/sbin"}
	libraryDirs = []string{"/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/lib"}
)

// Utility is a file of the vendor on the host.
type Utility struct {
	// Name is its file name in a container, Source its path without links, as an engine sees it.
	Name, Source string
}

// Tools returns the vendor's programs that are on the host.
func (h *Host) Tools() []Utility {
	var out []Utility
	for _, name := range h.Files.Tools {
		for _, dir := range toolDirs {
			if u, ok := h.utility(dir, name); ok {
				out = append(out, u)
				break
			}
		}
	}
	return out
}

// Libraries returns the vendor's libraries that are on the host: of the first directory that has one, all
// names it goes by. A program may be linked to libefml.so.1 and another one load libefml.so.
func (h *Host) Libraries() []Utility {
	var out []Utility
	for _, name := range h.Files.Libraries {
		for _, dir := range libraryDirs {
			found, ok := h.versions(dir, name)
			if ok {
				out = append(out, found...)
				break
			}
		}
	}
	return out
}

func (h *Host) versions(dir, name string) ([]Utility, bool) {
	entries, err := os.ReadDir(filepath.Join(h.Root, dir))
	if err != nil {
		return nil, false
	}
	var out []Utility
	for _, entry := range entries {
		version, ok := strings.CutPrefix(entry.Name(), name)
		if !ok || version != "" && !isVersion(version) {
			continue
		}
		if u, ok := h.utility(dir, entry.Name()); ok {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b Utility) int { return strings.Compare(a.Name, b.Name) })
	return out, len(out) > 0
}

// isVersion says whether a text is like ".2" or ".1.0.0".
func isVersion(text string) bool {
	return strings.HasPrefix(text, ".") && strings.Trim(text, ".0123456789") == ""
}

func (h *Host) utility(dir, name string) (Utility, bool) {
	path, err := Resolve(h.Root, filepath.Join(dir, name))
	if err != nil {
		return Utility{}, false
	}
	info, err := os.Stat(filepath.Join(h.Root, path))
	if err != nil || !info.Mode().IsRegular() {
		return Utility{}, false
	}
	return Utility{Name: name, Source: h.EnginePath(path)}, true
}
