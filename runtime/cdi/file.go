package cdi

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	"tags.cncf.io/container-device-interface/specs-go"
)

// staging starts the names of folders in which a spec is written before it is moved. Readers of CDI specs
// do not look into folders.
const staging = ".enflame-staging-"

// write puts a spec into place and says whether it was another one before.
func write(path string, spec *specs.Spec) (changed bool, err error) {
	dir := filepath.Dir(path)
	unlock, err := lock(dir)
	if err != nil {
		return false, err
	}
	defer unlock()
	leftovers, err := filepath.Glob(filepath.Join(dir, staging+"*"))
	if err != nil {
		return false, err
	}
	for _, leftover := range leftovers {
		if err := os.RemoveAll(leftover); err != nil {
			return false, err
		}
	}
	temp, err := os.MkdirTemp(dir, staging)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	cache, err := cdi.NewCache(cdi.WithSpecDirs(temp), cdi.WithAutoRefresh(false))
	if err != nil {
		return false, err
	}
	if err := cache.WriteSpec(spec, filepath.Base(path)); err != nil {
		return false, err
	}
	staged := filepath.Join(temp, filepath.Base(path))
	same, err := equal(staged, path)
	if err != nil || same {
		return false, err
	}
	if err := os.Chmod(staged, 0o644); err != nil {
		return false, err
	}
	if err := sync(staged); err != nil {
		return false, err
	}
	if err := os.Rename(staged, path); err != nil {
		return false, err
	}
	return true, sync(dir)
}

// remove removes a spec and says whether there was one.
func remove(path string) (bool, error) {
	unlock, err := lock(filepath.Dir(path))
	if err != nil {
		return false, err
	}
	defer unlock()
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	return true, sync(filepath.Dir(path))
}

// lock makes a folder if need be and holds it against other writers.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), file.Close())
	}
	return func() { _ = file.Close() }, nil // closing a folder that was only read cannot lose anything
}

func equal(a, b string) (bool, error) {
	left, err := os.ReadFile(a)
	if err != nil {
		return false, err
	}
	right, err := os.ReadFile(b)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return err == nil && bytes.Equal(left, right), nil
}

func sync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
