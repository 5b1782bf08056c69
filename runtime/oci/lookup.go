package oci

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// runtimeDirs are where a runtime given by name is looked for. PATH is left alone: it is the engine's, and
// engines start their shims with odd ones.
var runtimeDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// lookup returns the path of the first runtime that is there and is not this program itself, which a link
// called runc may well be.
func lookup(runtimes, dirs []string) (string, error) {
	self, selfErr := os.Stat("/proc/self/exe")
	for _, name := range runtimes {
		candidates := []string{name}
		if !filepath.IsAbs(name) {
			candidates = candidates[:0]
			for _, dir := range dirs {
				candidates = append(candidates, filepath.Join(dir, name))
			}
		}
		for _, path := range candidates {
			info, err := os.Stat(path)
			if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
				continue
			}
			if selfErr == nil && os.SameFile(self, info) {
				continue
			}
			return path, nil
		}
	}
	return "", fmt.Errorf("no runtime: want one of %s", strings.Join(runtimes, ", "))
}
