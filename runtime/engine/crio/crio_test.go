package crio_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/engine"
	"github.com/topscloud/topscloud/runtime/engine/crio"
	"github.com/topscloud/topscloud/runtime/host/hosttest"
)

func TestThereAndBack(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	path := filepath.Join(root, crio.DropInPath)
	o := engine.Options{Root: root, RuntimePath: contract.RuntimePath}
	runtime := map[string]any{"runtimes": map[string]any{"enflame": map[string]any{"runtime_path": contract.RuntimePath, "runtime_type": "oci"}}}
	for _, o.SetAsDefault = range []bool{false, true} {
		changes, err := crio.Configure(o)
		if err != nil || len(changes) != 1 {
			t.Fatalf("%d changes, %v", len(changes), err)
		}
		if err := changes[0].Apply(); err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := toml.Unmarshal(changes[0].New, &got); err != nil {
			t.Fatal(err)
		}
		if o.SetAsDefault {
			runtime["default_runtime"] = "enflame"
		}
		if diff := cmp.Diff(map[string]any{"crio": map[string]any{"runtime": runtime}}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if again, err := crio.Configure(o); err != nil || len(again) != 0 {
			t.Errorf("again: %d changes, %v", len(again), err)
		}
	}
	changes, err := crio.Unconfigure(o)
	if err != nil || len(changes) != 1 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	if err := changes[0].Apply(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
	hosttest.Write(t, root, crio.DropInPath, "# mine\n")
	if _, err := crio.Configure(o); err == nil {
		t.Error("somebody else's file is replaced")
	}
	if _, err := crio.Unconfigure(o); err == nil {
		t.Error("somebody else's file is removed")
	}
}
