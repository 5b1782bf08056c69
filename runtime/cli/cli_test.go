package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/topscloud/topscloud/runtime/cli"
	"github.com/topscloud/topscloud/runtime/host/hosttest"
	"github.com/topscloud/topscloud/runtime/modifier"
	"github.com/topscloud/topscloud/runtime/settings"
)

// run runs the command and returns what it wrote.
func run(root string, args ...string) (stdout, stderr string, err error) {
	var out, problems bytes.Buffer
	cmd := cli.New(func(key string) string { return map[string]string{"GCU_HOST_ROOT": root}[key] }, hosttest.Stat)
	cmd.SetOut(&out)
	cmd.SetErr(&problems)
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(context.Background())
	return out.String(), problems.String(), err
}

func TestInfo(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	out, problems, err := run(h.Root, "info")
	if err != nil || problems != "" {
		t.Fatal(err, problems)
	}
	for _, want := range []string{"driver   1.8.7", "T20", "/dev/gcu3 240:3", "/dev/gcuctl 239:255", "/usr/lib/enflame/libefml.so.1 ", h.Root + "/usr/bin/efsmi"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	out, _, err = run(h.Root, "info", "--json")
	var info cli.Info
	if err := json.Unmarshal([]byte(out), &info); err != nil {
		t.Fatal(err)
	}
	if err != nil || info.Version != "v1" || len(info.Cards) != 4 || len(info.Control) != 1 || len(info.Mounts) != 4 {
		t.Errorf("%v %+v", err, info)
	}

	// One card that cannot be looked at is named, and is no failure.
	if err := os.Remove(filepath.Join(h.Root, "dev/gcu2")); err != nil {
		t.Fatal(err)
	}
	out, problems, err = run(h.Root, "info")
	if err != nil || !strings.Contains(problems, "left out: ") || strings.Contains(out, "/dev/gcu2") {
		t.Errorf("%v\n%s%s", err, out, problems)
	}

	out, _, err = run(t.TempDir(), "info", "--json")
	if err == nil || json.Unmarshal([]byte(out), &info) != nil || info.Driver != "" {
		t.Errorf("a host without driver: %v\n%s", err, out)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	files := []string{"/usr/bin/efsmi", "/usr/lib/enflame/libefml.so", "/usr/lib/enflame/libefml.so.1", "/usr/lib/enflame/libefml.so.1.0.0"}
	tests := map[string]struct {
		want  []string
		fails string
	}{
		"":     {want: append([]string{"/dev/gcuctl", "/dev/gcu0", "/dev/gcu1", "/dev/gcu2", "/dev/gcu3"}, files...)},
		"1":    {want: append([]string{"/dev/gcuctl", "/dev/gcu1"}, files...)},
		"none": {want: files},
		"void": {},
		"4":    {fails: "no card 4"},
		"ALL":  {fails: `"ALL"`},
	}
	for device, tt := range tests {
		args := []string{"list"}
		if device != "" {
			args = append(args, "--device", device)
		}
		out, _, err := run(h.Root, args...)
		if tt.fails != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: error %v", device, err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, strings.Fields(out)); err != nil || diff != "" && len(tt.want)+len(out) > 0 {
			t.Errorf("%s: %v (-want +got):\n%s", device, err, diff)
		}
	}
	out, _, err := run(h.Root, "list", "--json", "--device", "2")
	var list cli.List
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	want := cli.List{Version: "v1", Device: "2", Nodes: []cli.Node{{Path: "/dev/gcuctl", Major: 239, Minor: 255}, {Path: "/dev/gcu2", Major: 240, Minor: 2}}}
	list.Mounts = nil
	if diff := cmp.Diff(want, list); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// newBundle makes a bundle whose image wants cards that it is not to get.
func newBundle(t *testing.T, edits ...func(*specs.Spec)) (dir string, text []byte) {
	t.Helper()
	s := &specs.Spec{Version: specs.Version, Root: &specs.Root{Path: "rootfs"}, Linux: &specs.Linux{},
		Process: &specs.Process{Env: []string{"ENFLAME_VISIBLE_DEVICES=all"}}}
	for _, edit := range edits {
		edit(s)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	hosttest.Write(t, dir, "config.json", string(text))
	return dir, text
}

func read(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What configure writes is what the wrapper would have made of a container that asks for the same.
func TestConfigure(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	dir, before := newBundle(t)

	out, _, err := run(h.Root, "configure", "--device", "1,2", "--dry-run", dir)
	if err != nil || !strings.Contains(out, `"/dev/gcu2"`) {
		t.Fatalf("%v\n%s", err, out)
	}
	if read(t, dir) != string(before) {
		t.Error("--dry-run changed the bundle")
	}
	if _, err := os.Lstat(filepath.Join(h.Root, "dev/char")); err == nil {
		t.Error("--dry-run changed the host")
	}

	if out, _, err := run(h.Root, "configure", "--device", "1,2", dir); err != nil || !strings.Contains(out, "cards [1 2]") {
		t.Fatalf("%v\n%s", err, out)
	}
	asking, text := newBundle(t, func(s *specs.Spec) { s.Process.Env = []string{"ENFLAME_VISIBLE_DEVICES=1,2"} })
	m := modifier.Modifier{Host: h, Settings: settings.Default().Runtime}
	want, _, err := m.Apply(context.Background(), asking, text)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Replace(read(t, dir), "ENFLAME_VISIBLE_DEVICES=all", "ENFLAME_VISIBLE_DEVICES=1,2", 1)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-wrapper +configure):\n%s", diff)
	}
	// The wrapper in front of the runtime adds nothing to it.
	again, outcome, err := m.Apply(context.Background(), dir, []byte(read(t, dir)))
	if err != nil || outcome.Changed || string(again) != read(t, dir) {
		t.Errorf("%v %+v", err, outcome)
	}
	if _, _, err := run(h.Root, "configure", "--device", "1", dir); err == nil || !strings.Contains(err.Error(), "cards already") {
		t.Errorf("twice: %v", err)
	}
	dir, before = newBundle(t)
	if _, _, err := run(h.Root, "configure", "--device", "void", dir); err != nil || read(t, dir) != string(before) {
		t.Errorf("void: %v", err)
	}
}

func TestConfigureRefuses(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t, "t20x4")
	secret := filepath.Join(t.TempDir(), "secret")
	tests := map[string]struct {
		prepare func(t *testing.T, dir string)
		edit    func(*specs.Spec)
		device  string
		want    string
	}{
		"libraries lead out":  {prepare: func(t *testing.T, dir string) { hosttest.Link(t, dir+"/rootfs", "/usr/lib", "../../../etc") }, want: "leads out"},
		"dev is a link":       {prepare: func(t *testing.T, dir string) { hosttest.Link(t, dir+"/rootfs", "/dev", "/tmp") }, want: "leads out"},
		"the root climbs out": {edit: func(s *specs.Spec) { s.Root.Path = "../../.." }, want: "leads out"},
		"the spec is a link": {prepare: func(t *testing.T, dir string) {
			if err := os.Rename(dir+"/config.json", secret); err != nil {
				t.Fatal(err)
			}
			hosttest.Link(t, dir, "config.json", secret)
		}, want: "no regular file"},
		"no spec": {prepare: func(t *testing.T, dir string) {
			if err := os.Remove(dir + "/config.json"); err != nil {
				t.Fatal(err)
			}
		}, want: "no such file"},
		"no such card":      {device: "7", want: "no card 7"},
		"a wrong selection": {device: "0, 1", want: "--device"},
	}
	for name, tt := range tests {
		var edits []func(*specs.Spec)
		if tt.edit != nil {
			edits = append(edits, tt.edit)
		}
		dir, before := newBundle(t, edits...)
		if tt.prepare != nil {
			tt.prepare(t, dir)
		}
		if tt.device == "" {
			tt.device = "0"
		}
		out, _, err := run(h.Root, "configure", "--device", tt.device, dir)
		if err == nil || !strings.Contains(err.Error(), tt.want) || out != "" {
			t.Errorf("%s: error %v, output %q", name, err, out)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "config.json")); err == nil && string(text) != string(before) {
			t.Errorf("%s: the spec is changed", name)
		}
	}
	if _, _, err := run(h.Root, "configure", t.TempDir()); err == nil || !strings.Contains(err.Error(), "device") {
		t.Errorf("no selection: %v", err)
	}
}
