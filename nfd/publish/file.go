package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/topscloud/topscloud/nfd/labels"
)

// DefaultFile is where NFD's worker looks, with a name of our own.
const DefaultFile = "/etc/kubernetes/node-feature-discovery/features.d/gcu-feature-discovery"

// MaxFile is the largest features file that NFD reads.
const MaxFile = 64 << 10

// File is a features file of NFD's local source.
type File struct {
	// Path is the file. Its folder has to exist.
	Path string
}

var _ Output = File{}

// String names the file.
func (f File) String() string { return "features file " + f.Path }

// Read returns the labels of the file.
func (f File) Read(context.Context) (labels.Set, error) {
	file, err := os.Open(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err != nil {
		return nil, err
	}
	set, err := ParseFile(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return set, nil
}

// Publish replaces the file.
func (f File) Publish(ctx context.Context, r labels.Result) (bool, error) {
	was, err := os.ReadFile(f.Path)
	exists := err == nil
	if len(r.Labels) == 0 {
		err := os.Remove(f.Path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return exists, err
	}
	text, err := FileText(r.Labels)
	if err != nil {
		return false, err
	}
	if exists && string(was) == text {
		return false, nil
	}
	return true, f.replace(text)
}

// replace writes beside the file and renames: NFD passes over names that start with a dot.
func (f File) replace(text string) (err error) {
	folder, name := filepath.Split(f.Path)
	f.sweep(folder, name)
	temp, err := os.CreateTemp(folder, "."+name+".tmp-")
	if err != nil {
		return fmt.Errorf("features file: %w (is the folder there, and mounted to be written?)", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	_, err = temp.WriteString(text)
	err = errors.Join(err, temp.Chmod(0o644), temp.Sync(), temp.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), f.Path); err != nil {
		return err
	}
	return syncFolder(folder)
}

// sweep removes what a process that was killed while it wrote has left.
func (f File) sweep(folder, name string) {
	old, err := filepath.Glob(filepath.Join(folder, "."+name+".tmp-*"))
	if err != nil {
		return // the path has characters of a pattern; what is left is passed over by NFD
	}
	for _, path := range old {
		_ = os.Remove(path)
	}
}

// syncFolder makes a rename outlast a loss of power, where the file system can.
func syncFolder(folder string) error {
	d, err := os.Open(filepath.Clean(folder))
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

// FileText returns a set as a features file. It has no comment: NFD before 0.14 would take it for a label.
func FileText(set labels.Set) (string, error) {
	text := set.Text()
	if len(text) > MaxFile {
		return "", fmt.Errorf("features file: %d bytes, NFD reads at most %d", len(text), MaxFile)
	}
	// What is read back has to be what was written.
	if again, err := ParseFile(text); err != nil || len(again) != len(set) {
		return "", fmt.Errorf("features file: a label cannot be written as a line: %w", err)
	}
	return text, nil
}

// ParseFile reads a features file: lines key=value or key (which is true), empty lines and those that start
// with #. It is as strict as a file of our own can be: directives of NFD, keys without a domain and what is no
// legal label are errors.
func ParseFile(text string) (labels.Set, error) {
	if len(text) > MaxFile {
		return nil, fmt.Errorf("more than %d bytes", MaxFile)
	}
	set := labels.Set{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "# +") {
			return nil, fmt.Errorf("line %d: %q is a directive; this file has none", number, line)
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, given := strings.Cut(line, "=")
		if !given {
			value = "true"
		}
		if err := legal(key, value); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if _, twice := set[key]; twice {
			return nil, fmt.Errorf("line %d: label %s: want each once", number, key)
		}
		set[key] = value
	}
	return set, nil
}
