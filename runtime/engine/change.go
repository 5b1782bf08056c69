package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Options say how the runtime is to be configured.
type Options struct {
	// Root is where the host's files are.
	Root string
	// RuntimePath is enflame-container-runtime as the engine sees it.
	RuntimePath string
	// SetAsDefault makes it the runtime of containers that name none.
	SetAsDefault bool
	// SystemdCgroup says whether systemd manages the cgroups; nil is as the default runtime has it.
	SystemdCgroup *bool
}

// Change is a file that is to be another one. A nil text is no file.
type Change struct {
	Path     string
	Old, New []byte
}

// Read returns the text of a file, nil if there is none.
func Read(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && text == nil {
		text = []byte{}
	}
	return text, err
}

// Real returns those changes that change something.
func Real(changes []Change) []Change {
	var out []Change
	for _, c := range changes {
		if (c.Old == nil) != (c.New == nil) || !bytes.Equal(c.Old, c.New) {
			out = append(out, c)
		}
	}
	return out
}

// Apply makes the change in one step. A file that is no more what it was when the change was thought out is
// left alone.
func (c Change) Apply() error {
	now, err := Read(c.Path)
	if err != nil {
		return err
	}
	if (now == nil) != (c.Old == nil) || !bytes.Equal(now, c.Old) {
		return fmt.Errorf("%s has changed meanwhile: try again", c.Path)
	}
	if c.New == nil {
		return os.Remove(c.Path)
	}
	mode := fs.FileMode(0o644)
	path := c.Path
	if c.Old != nil {
		// A link stays one: what it leads to is changed.
		if path, err = filepath.EvalSymlinks(c.Path); err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".enflame-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(c.New)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

// Diff returns the lines that go ("-") and come ("+"), with the numbers of their lines before.
func (c Change) Diff() string {
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n", c.Path)
	a, b := lines(c.Old), lines(c.New)
	for len(a) > 0 || len(b) > 0 {
		same := 0
		for same < len(a) && same < len(b) && a[same] == b[same] {
			same++
		}
		a, b = a[same:], b[same:]
		if len(a) == 0 && len(b) == 0 {
			break
		}
		i, j := resume(a, b)
		fmt.Fprintf(&out, "@@ line %d\n", len(lines(c.Old))-len(a)+1)
		for _, line := range a[:i] {
			fmt.Fprintf(&out, "-%s\n", line)
		}
		for _, line := range b[:j] {
			fmt.Fprintf(&out, "+%s\n", line)
		}
		a, b = a[i:], b[j:]
	}
	return out.String()
}

// resume returns how many lines go and come until both texts go on alike.
func resume(a, b []string) (int, int) {
	for sum := 1; sum <= len(a)+len(b); sum++ {
		for i := max(0, sum-len(b)); i <= min(sum, len(a)); i++ {
			j := sum - i
			if i == len(a) && j == len(b) || i < len(a) && j < len(b) && a[i] == b[j] {
				return i, j
			}
		}
	}
	return len(a), len(b)
}

func lines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
