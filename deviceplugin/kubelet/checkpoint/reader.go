package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Reader reads the file again and again and parses each version of it once. It is safe for concurrent
// use.
type Reader struct {
	path string

	// mu guards what was read last; it is held while reading, so that many callers cost one read.
	mu    sync.Mutex
	stat  os.FileInfo
	value *Checkpoint
}

// attempts bounds how often a version that does not parse is read again because kubelet has replaced it
// meanwhile.
const attempts = 3

// NewReader returns a reader of the file at path.
func NewReader(path string) *Reader { return &Reader{path: path} }

// Read returns the file as it stands. The value is shared and must not be changed.
func (r *Reader) Read() (*Checkpoint, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var last error
	for range attempts {
		value, stat, err := r.readLocked()
		if err == nil {
			r.value, r.stat = value, stat
			return value, nil
		}
		last = err
		now, statErr := os.Stat(r.path)
		if stat == nil || statErr != nil || sameVersion(stat, now) {
			break
		}
	}
	r.value, r.stat = nil, nil
	return nil, last
}

func (r *Reader) readLocked() (*Checkpoint, os.FileInfo, error) {
	f, err := os.Open(r.path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return nil, nil, fmt.Errorf("stat %s: %w", r.path, err)
	}
	if r.value != nil && sameVersion(stat, r.stat) {
		return r.value, stat, nil
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, stat, fmt.Errorf("read %s: %w", r.path, err)
	}
	value, err := Parse(text)
	if err != nil {
		return nil, stat, fmt.Errorf("parse %s: %w", r.path, err)
	}
	return value, stat, nil
}

// Missing says whether an error means that there is no file: kubelet has given out nothing yet.
func Missing(err error) bool { return errors.Is(err, os.ErrNotExist) }

// sameVersion compares inode, size and time: an inode alone is soon used again.
func sameVersion(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
