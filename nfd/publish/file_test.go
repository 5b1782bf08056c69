package publish_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/topscloud/topscloud/nfd/labels"
	"github.com/topscloud/topscloud/nfd/publish"
)

var set = labels.Set{"enflame.com/gcu.count": "8", "enflame.com/gcu.model": "S60", "enflame.com/gfd.timestamp": "2024-05-20-06-40-27"}

func result(s labels.Set) labels.Result { return labels.Result{Labels: s} }

// nfdReads is the grammar of NFD's local source by its documentation (customization guide, feature files): at
// most 64 KiB; names that start with a dot are passed over; lines key or key=value, the value true where
// there is none; # starts a comment, "# +" a directive: expiry-time=RFC3339 for what follows, no-feature and
// no-label for the next line. NFD's master then drops labels that are not legal, that are in a kubernetes.io
// namespace other than NFD's own, and that have no namespace.
func nfdReads(t *testing.T, path string, now time.Time) map[string]string {
	t.Helper()
	out := map[string]string{}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || strings.HasPrefix(filepath.Base(path), ".") {
		return out
	}
	if err != nil || info.Size() > 65536 || !info.Mode().IsRegular() {
		t.Fatalf("NFD does not read %s: %v, %v", path, info, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	expired, skip := false, false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if directive, is := strings.CutPrefix(line, "# +"); is {
			name, value, _ := strings.Cut(directive, "=")
			switch name {
			case "expiry-time":
				at, err := time.Parse(time.RFC3339, value)
				if err != nil {
					t.Fatal(err)
				}
				expired = at.Before(now)
			case "no-label":
				skip = true
			case "no-feature":
			default:
				t.Fatalf("unknown directive %q", line)
			}
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, given := strings.Cut(line, "=")
		if !given {
			value = "true"
		}
		domain, _, named := strings.Cut(key, "/")
		foreign := domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io")
		if bad := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(bad) > 0 || !named || foreign {
			t.Fatalf("NFD drops %q: %v", line, bad)
		}
		if !expired && !skip {
			out[key] = value
		}
		skip = false
	}
	return out
}

func TestFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	f := publish.File{Path: filepath.Join(folder, "gcu")}
	if was, err := f.Read(t.Context()); was != nil || err != nil {
		t.Fatalf("nothing is there: %v, %v", was, err)
	}
	left := filepath.Join(folder, ".gcu.tmp-123")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if changed, err := f.Publish(t.Context(), result(set)); changed != want || err != nil {
			t.Fatalf("changed %t, %v: want %t", changed, err, want)
		}
	}
	if diff := cmp.Diff(map[string]string(set), nfdReads(t, f.Path, time.Now())); diff != "" {
		t.Errorf("NFD reads (-want +got):\n%s", diff)
	}
	if got, err := f.Read(t.Context()); err != nil || !maps.Equal(got, set) {
		t.Errorf("read back: %v, %v", got, err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("left beside the file: %v, %v", entries, err)
	}
	if info, err := os.Stat(f.Path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, want := range []bool{true, false} {
		if changed, err := f.Publish(t.Context(), labels.Result{}); changed != want || err != nil {
			t.Fatalf("withdrawn %t, %v: want %t", changed, err, want)
		}
	}
	if got := nfdReads(t, f.Path, time.Now()); len(got) != 0 {
		t.Errorf("after it was withdrawn NFD reads %v", got)
	}
}

func TestFileRefuses(t *testing.T) {
	t.Parallel()
	f := publish.File{Path: filepath.Join(t.TempDir(), "gcu")}
	if _, err := f.Publish(t.Context(), result(set)); err != nil {
		t.Fatal(err)
	}
	large := labels.Set{}
	for i := range 2000 {
		large[fmt.Sprintf("enflame.com/gcu.%040d", i)] = "1"
	}
	for name, bad := range map[string]labels.Set{
		"too large":    large,
		"a line break": {"enflame.com/gcu.model": "S60\nx/y=z"},
		"no domain":    {"count": "8"},
		"no value":     {"enflame.com/gcu.model": "not legal"},
	} {
		if _, err := f.Publish(t.Context(), result(bad)); err == nil {
			t.Errorf("%s: was written", name)
		}
		if got, err := f.Read(t.Context()); err != nil || !maps.Equal(got, set) {
			t.Errorf("%s: the file is %v, %v", name, got, err)
		}
	}
	missing := publish.File{Path: filepath.Join(t.TempDir(), "none", "gcu")}
	if _, err := missing.Publish(t.Context(), result(set)); err == nil || !strings.Contains(err.Error(), "is the folder there") {
		t.Errorf("no folder: %v", err)
	}
	if err := os.WriteFile(f.Path, []byte("x=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(t.Context()); err == nil || !strings.Contains(err.Error(), f.Path+": line 1") {
		t.Errorf("somebody else's file: %v", err)
	}
}

// A reader that looks all the time sees the old or the new set, never less.
func TestFileHasNoGap(t *testing.T) {
	t.Parallel()
	f := publish.File{Path: filepath.Join(t.TempDir(), "gcu")}
	if _, err := f.Publish(t.Context(), result(set)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			got, err := f.Read(t.Context())
			if err != nil || len(got) != len(set) || got["enflame.com/gcu.model"] != "S60" {
				t.Errorf("seen: %v, %v", got, err)
				return
			}
		}
	})
	for i := range 200 {
		next := maps.Clone(set)
		next["enflame.com/gcu.count"] = fmt.Sprint(i + 1)
		if _, err := f.Publish(t.Context(), result(next)); err != nil {
			t.Error(err)
			break
		}
	}
	close(done)
	wg.Wait()
}

func FuzzParseFile(f *testing.F) {
	text, err := publish.FileText(set)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add("# a\n\nenflame.com/gcu.present\nenflame.com/a=b=c\n# +expiry-time=x\n")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := publish.ParseFile(text)
		if err != nil || len(set) == 0 {
			return
		}
		again, err := publish.FileText(set)
		if err != nil {
			if len(text) < publish.MaxFile/2 {
				t.Fatalf("read but not written: %v", err)
			}
			return
		}
		if back, err := publish.ParseFile(again); err != nil || !maps.Equal(back, set) {
			t.Errorf("%v becomes %v, %v", set, back, err)
		}
	})
}
