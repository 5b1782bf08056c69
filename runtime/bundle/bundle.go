// Package bundle reads and replaces the spec of an OCI bundle.
package bundle

import (
	"errors"
	"os"
	"path/filepath"
)

// specFile is the name of the spec in a bundle.
const specFile = "config.json"

// SpecPath returns the path of the spec of a bundle.
func SpecPath(bundle string) string { return filepath.Join(bundle, specFile) }

// Read reads the spec of a bundle.
func Read(bundle string) ([]byte, error) { return os.ReadFile(SpecPath(bundle)) }

// Replace replaces the spec of a bundle. A runtime that reads it meanwhile has the old or the new one.
// A bundle is made for one container, so there is nothing to keep over a power loss.
func Replace(bundle string, text []byte) error {
	path := SpecPath(bundle)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(bundle, ".config-*.json")
	if err != nil {
		return err
	}
	_, err = temp.Write(text)
	err = errors.Join(err, temp.Chmod(info.Mode().Perm()), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}
