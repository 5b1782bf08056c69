package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/topscloud/topscloud/runtime/host"
	"github.com/topscloud/topscloud/runtime/host/hosttest"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	hosttest.Write(t, root, "/usr/lib/x", "")
	hosttest.Link(t, root, "/lib", "usr/lib")
	hosttest.Link(t, root, "/opt/abs", "/usr/lib")
	hosttest.Link(t, root, "/usr/lib/enflame", "../../../../etc")
	hosttest.Link(t, root, "/usr/up", "../usr/lib/..")
	hosttest.Link(t, root, "/loop", "loop")
	hosttest.Link(t, root, "/out", "/../etc")
	tests := map[string]struct {
		path, want string
		escape     bool
		fails      bool
	}{
		"a path without links":             {path: "/usr/lib/x", want: "/usr/lib/x"},
		"a relative link":                  {path: "/lib/x", want: "/usr/lib/x"},
		"an absolute link is of the root":  {path: "/opt/abs/x", want: "/usr/lib/x"},
		"what does not exist stays":        {path: "/lib/new/y", want: "/usr/lib/new/y"},
		"below a file nothing exists":      {path: "/usr/lib/x/y", want: "/usr/lib/x/y"},
		"going up inside the root is fine": {path: "/usr/up/lib", want: "/usr/lib"},
		"a link that climbs out":           {path: "/usr/lib/enflame/libefml.so", escape: true},
		"an absolute link that climbs out": {path: "/out/passwd", escape: true},
		"a path that climbs out":           {path: "/usr/../../etc", escape: true},
		"a loop ends":                      {path: "/loop/x", fails: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := host.Resolve(root, tt.path)
			if got != tt.want || errors.Is(err, host.ErrEscape) != tt.escape || (err != nil) != (tt.escape || tt.fails) {
				t.Errorf("Resolve(%q) = %q, %v", tt.path, got, err)
			}
		})
	}
}

func TestListComparesSysWithDev(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "s60x8")
	cards, err := h.List(context.Background())
	if err != nil || len(cards) != 8 {
		t.Fatalf("%d cards, %v", len(cards), err)
	}
	hosttest.Write(t, h.Root, "/dev/gcu3", "1:3") // a stale node: that is /dev/null by now
	if err := os.Remove(filepath.Join(h.Root, "dev/gcu5")); err != nil {
		t.Fatal(err)
	}
	cards, err = h.List(context.Background())
	if len(cards) != 6 || err == nil || !strings.Contains(err.Error(), "/dev/gcu3 is 1:3") || !strings.Contains(err.Error(), "gcu5") {
		t.Errorf("%d cards, error %v: want 6, and gcu3 and gcu5 named", len(cards), err)
	}
}

func TestStatNode(t *testing.T) {
	t.Parallel()
	if _, err := host.StatNode(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a node that is not there: %v", err)
	}
	if _, err := host.StatNode(t.TempDir()); err == nil {
		t.Error("a folder is taken for a node")
	}
	path := filepath.Join(t.TempDir(), "gcu0")
	if err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(239, 7))); err != nil {
		t.Skip("needs CAP_MKNOD, the right to make device nodes:", err)
	}
	n, err := host.StatNode(path)
	if err != nil || n.Major != 239 || n.Minor != 7 || n.Mode != 0o600 {
		t.Errorf("%+v, %v", n, err)
	}
	link := path + "-link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := host.StatNode(link); err == nil {
		t.Error("a link is taken for a node")
	}
}

func TestCharLink(t *testing.T) {
	t.Parallel()
	h := &host.Host{Root: t.TempDir()}
	n := host.Node{Path: "/dev/gcu2", Major: 239, Minor: 2}
	if err := h.CharLink(n); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a link: %v", err)
	}
	for range 2 { // again changes nothing
		if err := h.MakeCharLink(n); err != nil {
			t.Fatal(err)
		}
	}
	if target, err := os.Readlink(filepath.Join(h.Root, "dev/char/239:2")); err != nil || target != "../gcu2" {
		t.Errorf("link to %q, %v", target, err)
	}
	n.Path = "/dev/gcu3"
	if err := h.CharLink(n); err == nil {
		t.Error("a link to another node is taken for ours")
	}
	if err := errors.Join(h.MakeCharLink(n), h.CharLink(n)); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Join(h.Root, "dev/char"))
	if err != nil || len(left) != 1 {
		t.Errorf("left in /dev/char: %v, %v", left, err)
	}
}

func TestUtilities(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	var names []string
	for _, u := range append(h.Tools(), h.Libraries()...) {
		names = append(names, u.Name+" "+strings.TrimPrefix(u.Source, h.Root))
	}
	want := []string{"efsmi /usr/bin/efsmi", "libefml.so /usr/lib/libefml.so.1.0.0",
		"libefml.so.1 /usr/lib/libefml.so.1.0.0", "libefml.so.1.0.0 /usr/lib/libefml.so.1.0.0"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParseFiles(t *testing.T) {
	t.Parallel()
	got, err := host.ParseFiles([]byte(`{"version":"1","registerResource":["acme.com/npu"],"mainDevice":["/dev/npu"],"virtualDevice":["/dev/vgcu"],
		"driverDevice":["/dev/npuctl"],"utilityBins":["npusmi"],"utilityLibs":["libnpu.so"]}`))
	want := host.Files{Resource: "acme.com/npu", Card: "/dev/npu", Control: []string{"/dev/npuctl"}, Tools: []string{"npusmi"}, Libraries: []string{"libnpu.so"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{`{`, `{"mainDevice":["/etc/gcu"]}`, `{"driverDevice":["/dev/../etc"]}`, `{"utilityBins":["../sh"]}`,
		`{"utilityLibs":[""]}`, `{"registerResource":["gcu"]}`} {
		if _, err := host.ParseFiles([]byte(bad)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

func FuzzParseFiles(f *testing.F) {
	f.Add(`{"mainDevice":["/dev/gcu"],"utilityBins":["efsmi"]}`)
	f.Add(`{"driverDevice":["/dev/.."]}`)
	f.Fuzz(func(t *testing.T, text string) {
		files, err := host.ParseFiles([]byte(text))
		if err != nil {
			return
		}
		for _, device := range append(slices.Clone(files.Control), files.Card) {
			if rel, err := filepath.Rel("/dev", device); err != nil || strings.HasPrefix(rel, "..") || rel == "." {
				t.Fatalf("%q gives device %q", text, device)
			}
		}
	})
}
