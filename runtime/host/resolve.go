package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrEscape means that a path leads out of the root it is to be resolved in.
var ErrEscape = errors.New("path leads out of the root file system")

// maxLinks bounds the links one path may go through, as the kernel does.
const maxLinks = 40

// Resolve returns the path, as seen inside root, that is left when all links of path are followed. An
// absolute link starts anew at root, as it does for a process inside. A link or path that climbs above
// root is ErrEscape, although the kernel would let it stop at the root: nobody writes that by accident.
// Parts that do not exist are taken as they are.
func Resolve(root, path string) (string, error) {
	at, rest, links := "/", strings.Split(path, "/"), 0
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			if at == "/" {
				return "", fmt.Errorf("%s: %w", path, ErrEscape)
			}
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(filepath.Join(root, next))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			at = next
			continue
		case err != nil:
			return "", fmt.Errorf("resolve %s: %w", path, err)
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("resolve %s: more than %d links", path, maxLinks)
		}
		target, err := os.Readlink(filepath.Join(root, next))
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", path, err)
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}
