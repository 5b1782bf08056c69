// Package enginetest is what the tests of several engines share.
package enginetest

import (
	"testing"

	"github.com/topscloud/topscloud/runtime/engine"
)

// Apply makes changes and returns how many there were.
func Apply(t testing.TB, changes []engine.Change, err error) int {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if err := c.Apply(); err != nil {
			t.Fatal(err)
		}
	}
	return len(changes)
}
