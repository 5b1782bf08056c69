package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/runtime/engine"
)

func TestApply(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := os.WriteFile(path, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	if err := (engine.Change{Path: link, Old: []byte("other\n"), New: []byte("b\n")}).Apply(); err == nil {
		t.Error("a file that has changed meanwhile is replaced")
	}
	if err := (engine.Change{Path: link, Old: []byte("a\n"), New: []byte("b\n")}).Apply(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	text, err := os.ReadFile(path)
	if info, statErr := os.Stat(path); err != nil || statErr != nil || string(text) != "b\n" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v", text, err, statErr)
	}
	made := filepath.Join(dir, "new", "file")
	if err := (engine.Change{Path: made, New: []byte("c")}).Apply(); err != nil {
		t.Fatal(err)
	}
	if err := (engine.Change{Path: made, Old: []byte("c")}).Apply(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(made); !os.IsNotExist(err) {
		t.Errorf("the file is there: %v", err)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ before, after, want string }{
		"a line changes":    {"a\nb\nc\n", "a\nB\nc\n", "--- f\n@@ line 2\n-b\n+B\n"},
		"lines at the end":  {"a\n", "a\nb\nc\n", "--- f\n@@ line 2\n+b\n+c\n"},
		"a line goes":       {"a\nb\nc\n", "a\nc\n", "--- f\n@@ line 2\n-b\n"},
		"a new file":        {"", "a\n", "--- f\n@@ line 1\n+a\n"},
		"two places":        {"a\nb\nc\nd\n", "A\nb\nc\nD\n", "--- f\n@@ line 1\n-a\n+A\n@@ line 4\n-d\n+D\n"},
		"all is another":    {"a\nb\n", "c\n", "--- f\n@@ line 1\n-a\n-b\n+c\n"},
		"nothing at all":    {"a\n", "a\n", "--- f\n"},
		"two become three":  {"x\n1\n2\ny\n", "x\n3\n4\n5\ny\n", "--- f\n@@ line 2\n-1\n-2\n+3\n+4\n+5\n"},
		"a file is emptied": {"a\n", "", "--- f\n@@ line 1\n-a\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, engine.Change{Path: "f", Old: []byte(tt.before), New: []byte(tt.after)}.Diff()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
