package docker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/engine"
	"github.com/topscloud/topscloud/runtime/engine/docker"
	"github.com/topscloud/topscloud/runtime/engine/enginetest"
	"github.com/topscloud/topscloud/runtime/host/hosttest"
)

func configure(t testing.TB, o engine.Options) int {
	t.Helper()
	changes, err := docker.Configure(o)
	return enginetest.Apply(t, changes, err)
}

func unconfigure(t testing.TB, o engine.Options) int {
	t.Helper()
	changes, err := docker.Unconfigure(o)
	return enginetest.Apply(t, changes, err)
}

// text returns daemon.json, "-" if there is none.
func text(t testing.TB, root string) string {
	t.Helper()
	text, err := engine.Read(filepath.Join(root, docker.ConfigPath))
	if err != nil {
		t.Fatal(err)
	}
	if text == nil {
		return "-"
	}
	return string(text)
}

const ordered = `{"log-driver":"json-file", "default-runtime": "runc",
  "runtimes": {"z": {"path": "/z"}, "a": {"path": "/a<b"}}, "big": 12345678901234567890}`

func TestThereAndBack(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		before    string // "-" is no file
		asDefault bool
		want      string
	}{
		"no file": {before: "-", asDefault: true, want: `{
    "runtimes": {
        "enflame": {
            "path": "/usr/bin/enflame-container-runtime"
        }
    },
    "default-runtime": "enflame"
}
`},
		"an empty file":   {before: "", want: "{\n    \"runtimes\": {\n        \"enflame\": {\n            \"path\": \"/usr/bin/enflame-container-runtime\"\n        }\n    }\n}\n"},
		"an empty object": {before: "{}", want: "{\n    \"runtimes\": {\n        \"enflame\": {\n            \"path\": \"/usr/bin/enflame-container-runtime\"\n        }\n    }\n}\n"},
		"order, text and numbers are kept": {before: ordered, asDefault: true, want: `{
    "log-driver": "json-file",
    "default-runtime": "enflame",
    "runtimes": {
        "z": {
            "path": "/z"
        },
        "a": {
            "path": "/a\u003cb"
        },
        "enflame": {
            "path": "/usr/bin/enflame-container-runtime"
        }
    },
    "big": 12345678901234567890
}
`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			if tt.before != "-" {
				hosttest.Write(t, root, docker.ConfigPath, tt.before)
			}
			o := engine.Options{Root: root, RuntimePath: contract.RuntimePath, SetAsDefault: tt.asDefault}
			configure(t, o)
			if diff := cmp.Diff(tt.want, text(t, root)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := configure(t, o); n != 0 {
				t.Errorf("configured again: %d files changed", n)
			}
			o.SetAsDefault = !o.SetAsDefault
			configure(t, o)
			unconfigure(t, o)
			if diff := cmp.Diff(tt.before, text(t, root)); diff != "" {
				t.Errorf("undone (-want +got):\n%s", diff)
			}
			if left, err := filepath.Glob(filepath.Join(root, "etc/docker/*enflame*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if n := unconfigure(t, o); n != 0 {
				t.Errorf("undone again: %d files changed", n)
			}
		})
	}
}

// TestUndoKeepsWhatCameLater: somebody else edited the file since.
func TestUndoKeepsWhatCameLater(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	hosttest.Write(t, root, docker.ConfigPath, ordered)
	o := engine.Options{Root: root, RuntimePath: contract.RuntimePath, SetAsDefault: true}
	configure(t, o)
	hosttest.Write(t, root, docker.ConfigPath, strings.Replace(text(t, root), "json-file", "local", 1))
	o.SetAsDefault = false
	configure(t, o)
	if got := text(t, root); !strings.Contains(got, `"default-runtime": "runc"`) || !strings.Contains(got, `"enflame": {`) {
		t.Errorf("configured again: %s", got)
	}
	unconfigure(t, o)
	got := text(t, root)
	if !strings.Contains(got, `"local"`) || !strings.Contains(got, `"default-runtime": "runc"`) || strings.Contains(got, "enflame") {
		t.Errorf("undone: %s", got)
	}
}

// TestStoppedBetween: the tool was killed when it had kept the text and not yet written the new one.
func TestStoppedBetween(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	hosttest.Write(t, root, docker.ConfigPath, ordered)
	o := engine.Options{Root: root, RuntimePath: contract.RuntimePath}
	changes, err := docker.Configure(o)
	if err != nil || len(changes) != 2 {
		t.Fatalf("%d changes, %v", len(changes), err)
	}
	if err := changes[0].Apply(); err != nil {
		t.Fatal(err)
	}
	if n := configure(t, o); n != 1 {
		t.Errorf("%d files changed: want the one that was left", n)
	}
	unconfigure(t, o)
	if diff := cmp.Diff(ordered, text(t, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{
		"no JSON":                   "{",
		"a list":                    "[]",
		"runtimes is a list":        `{"runtimes":[]}`,
		"somebody else's runtime":   `{"runtimes":{"enflame":{"path":"/x"}}}`,
		"a key twice":               `{"a":1,"a":2}`,
		"two objects":               `{}{}`,
		"a default that is no text": `{"default-runtime":1}`,
	} {
		root := t.TempDir()
		hosttest.Write(t, root, docker.ConfigPath, before)
		if _, err := docker.Configure(engine.Options{Root: root, RuntimePath: contract.RuntimePath}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if now, err := os.ReadFile(filepath.Join(root, docker.ConfigPath)); err != nil || string(now) != before {
			t.Errorf("%s: the file has changed", name)
		}
	}
}

func FuzzThereAndBack(f *testing.F) {
	f.Add(ordered)
	f.Add(`{"runtimes":null}`)
	f.Fuzz(func(t *testing.T, before string) {
		root := t.TempDir()
		hosttest.Write(t, root, docker.ConfigPath, before)
		o := engine.Options{Root: root, RuntimePath: contract.RuntimePath, SetAsDefault: true}
		changes, err := docker.Configure(o)
		if err != nil {
			return
		}
		enginetest.Apply(t, changes, nil)
		if n := configure(t, o); n != 0 {
			t.Errorf("configured again: %d files changed", n)
		}
		unconfigure(t, o)
		if diff := cmp.Diff(before, text(t, root)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
