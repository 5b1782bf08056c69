package containerd_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/engine"
	"github.com/topscloud/topscloud/runtime/engine/containerd"
	"github.com/topscloud/topscloud/runtime/engine/enginetest"
	"github.com/topscloud/topscloud/runtime/host/hosttest"
)

var update = flag.Bool("update", false, "write the golden files")

var yes, no = true, false

func options(root string) engine.Options {
	return engine.Options{Root: root, RuntimePath: contract.RuntimePath}
}

func configure(t testing.TB, o engine.Options) int {
	t.Helper()
	changes, err := containerd.Configure(o)
	return enginetest.Apply(t, changes, err)
}

func unconfigure(t testing.TB, o engine.Options) int {
	t.Helper()
	changes, err := containerd.Unconfigure(o)
	return enginetest.Apply(t, changes, err)
}

// snapshot returns all files of a folder.
func snapshot(t testing.TB, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, root)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestGolden configures the default file of containerd 1.7.24. The options are those the guide prints.
func TestGolden(t *testing.T) {
	before, err := os.ReadFile("testdata/default-1.7.24.toml")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	hosttest.Write(t, root, containerd.ConfigPath, string(before))
	o := options(root)
	o.SystemdCgroup = &yes
	configure(t, o)
	got := snapshot(t, root)[containerd.ConfigPath]
	if *update {
		if err := os.WriteFile("testdata/default-1.7.24.golden.toml", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/default-1.7.24.golden.toml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	guide := `          [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.enflame.options]
            BinaryName = "/usr/bin/enflame-container-runtime"
            CriuImagePath = ""
            CriuPath = ""
            CriuWorkPath = ""
            IoGid = 0
            IoUid = 0
            NoNewKeyring = false
            NoPivotRoot = false
            Root = ""
            ShimCgroup = ""
            SystemdCgroup = true
`
	if !strings.Contains(got, guide) {
		t.Error("the options are not those of the guide")
	}
	if !strings.Contains(got, "\n    enable_cdi = true #") {
		t.Error("CDI is not switched on")
	}
}

// hosts are configurations as they are found.
func hosts() map[string]map[string]string {
	file := func(text string) map[string]string { return map[string]string{containerd.ConfigPath: text} }
	return map[string]map[string]string{
		"no file":            {},
		"an empty file":      file(""),
		"version 2, minimal": file("version = 2\n"),
		"without a line end": file("version = 2 # why"),
		"version 1":          file("# ours\n[plugins.cri.containerd.runtimes.runc]\n  runtime_type = \"io.containerd.runc.v2\"\n"),
		"with comments": file(`# Managed by the platform team.
version = 2   # keep
[plugins."io.containerd.grpc.v1.cri"] # cri
	sandbox_image = "pause" # odd indent
[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]
SystemdCgroup = true
`),
		"with line ends of Windows": file("version = 2\r\n[plugins.\"io.containerd.grpc.v1.cri\"]\r\n  enable_cdi = false\r\n"),
		"the default is another": file(`version = 2
[plugins."io.containerd.grpc.v1.cri".containerd]
  default_runtime_name = "crun"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun]
  runtime_type = "io.containerd.runc.v2"
  base_runtime_spec = "/etc/containerd/base.json"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun.options]
    BinaryName = "/usr/bin/crun"
    SystemdCgroup = true
`),
		"version 3":              file("version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]\n  runtime_type = 'io.containerd.runc.v2'\n"),
		"version 3 with CDI off": file("version = 3\n[plugins.'io.containerd.cri.v1.runtime']\n  enable_cdi = false\n"),
		"version 4 with a folder": {
			containerd.ConfigPath:            "version = 4\nimports = ['/etc/containerd/conf.d/*.toml']\n",
			"/etc/containerd/conf.d/10.toml": "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]\n  runtime_type = 'io.containerd.runc.v2'\n  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\n    SystemdCgroup = true\n",
		},
		"version 3 with an empty folder": file("version = 3\nimports = ['conf.d/*.toml']\n"),
		"version 2 with the CRI plugin in an import": {
			containerd.ConfigPath:           "version = 2\nimports = ['/etc/containerd/more/*.toml']\n[plugins.'io.containerd.grpc.v1.cri']\n  sandbox_image = 'gone'\n",
			"/etc/containerd/more/cri.toml": "version = 2\n# the one that counts\n[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]\n  runtime_type = 'io.containerd.runc.v2'\n",
			"/etc/containerd/more/x.toml":   "version = 2\noom_score = 1\n",
		},
	}
}

// TestThereAndBack configures each of the hosts, configures it again, and undoes it.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	for name, files := range hosts() {
		for _, asDefault := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				root := t.TempDir()
				for path, text := range files {
					hosttest.Write(t, root, path, text)
				}
				before := snapshot(t, root)
				o := options(root)
				o.SetAsDefault = asDefault
				if n := configure(t, o); n != 1 {
					t.Errorf("%d files changed: want 1", n)
				}
				after := snapshot(t, root)
				for path, text := range after {
					var parsed map[string]any
					if err := toml.Unmarshal([]byte(text), &parsed); err != nil {
						t.Errorf("%s: %v\n%s", path, err, text)
					}
				}
				if n := configure(t, o); n != 0 {
					t.Errorf("configured again: %d files changed: %s", n, cmp.Diff(after, snapshot(t, root)))
				}
				// Another setting and back leaves no traces of the first.
				o.SystemdCgroup = &yes
				configure(t, o)
				o.SystemdCgroup = nil
				configure(t, o)
				if diff := cmp.Diff(after, snapshot(t, root)); diff != "" {
					t.Errorf("changed and changed back (-want +got):\n%s", diff)
				}
				unconfigure(t, o)
				if diff := cmp.Diff(before, snapshot(t, root)); diff != "" {
					t.Errorf("undone (-want +got):\n%s", diff)
				}
				if n := unconfigure(t, o); n != 0 {
					t.Errorf("undone again: %d files changed", n)
				}
			})
		}
	}
}

// TestWhere looks into which file the runtime went, and what it has inherited.
func TestWhere(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path string
		want []string
	}{
		"no file":                                    {containerd.ConfigPath, []string{"version = 2\n", `enable_cdi = true`, `"io.containerd.grpc.v1.cri"`}},
		"version 1":                                  {containerd.ConfigPath, []string{`[plugins.cri.containerd.runtimes.enflame.options]`}},
		"with comments":                              {containerd.ConfigPath, []string{`SystemdCgroup = true`, "# Managed by the platform team."}},
		"the default is another":                     {containerd.ConfigPath, []string{`base_runtime_spec = "/etc/containerd/base.json"`, `BinaryName = "/usr/bin/enflame-container-runtime"`}},
		"version 3 with CDI off":                     {containerd.ConfigPath, []string{"enable_cdi = true # enflame-ctk: was \"  enable_cdi = false\""}},
		"version 4 with a folder":                    {"/etc/containerd/conf.d/99-enflame.toml", []string{"version = 4", "SystemdCgroup = true"}},
		"version 3 with an empty folder":             {"/etc/containerd/conf.d/99-enflame.toml", []string{"version = 3", `"io.containerd.cri.v1.runtime"`}},
		"version 2 with the CRI plugin in an import": {"/etc/containerd/more/cri.toml", []string{"# the one that counts", "runtimes.enflame"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for path, text := range hosts()[name] {
				hosttest.Write(t, root, path, text)
			}
			configure(t, options(root))
			text := snapshot(t, root)[tt.path]
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s has no %s:\n%s", tt.path, want, text)
				}
			}
		})
	}
}

// TestTheDefaultStays: our runtime was the only one in the table, so containerd 1 had no runc any more and its
// CRI plugin did not load.
func TestTheDefaultStays(t *testing.T) {
	t.Parallel()
	for name, files := range hosts() {
		root := t.TempDir()
		said := false
		for path, text := range files {
			hosttest.Write(t, root, path, text)
			said = said || strings.Contains(text, "runtimes")
		}
		configure(t, options(root))
		found := false
		for _, text := range snapshot(t, root) {
			found = found || strings.Contains(text, `runtimes.runc]`+"\n          runtime_type = \"io.containerd.runc.v2\"\n# END")
		}
		if found == said {
			t.Errorf("%s: runc added %t, runtimes there before %t", name, found, said)
		}
	}
}

// TestUndoKeepsWhatCameLater: between configuring and undoing, somebody else edited the file.
func TestUndoKeepsWhatCameLater(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	hosttest.Write(t, root, containerd.ConfigPath, "version = 2")
	configure(t, options(root))
	text := snapshot(t, root)[containerd.ConfigPath]
	hosttest.Write(t, root, containerd.ConfigPath, "# new\n"+text+"[debug]\n  level = 'info'\n")
	if n := configure(t, options(root)); n != 1 { // the block goes to the end
		t.Errorf("%d files changed", n)
	}
	unconfigure(t, options(root))
	if diff := cmp.Diff("# new\nversion = 2\n[debug]\n  level = 'info'\n", snapshot(t, root)[containerd.ConfigPath]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files map[string]string
		want  string
	}{
		"no TOML":                      {map[string]string{containerd.ConfigPath: "[["}, "config.toml"},
		"a later version":              {map[string]string{containerd.ConfigPath: "version = 5\n"}, "version 5"},
		"somebody else's runtime":      {map[string]string{containerd.ConfigPath: "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.enflame]\nruntime_type = 'x'\n"}, "not by this tool"},
		"tables within a line":         {map[string]string{containerd.ConfigPath: "version = 2\n[plugins]\n'io.containerd.grpc.v1.cri' = {enable_cdi = false}\n"}, "cannot be edited"},
		"a header within a text":       {map[string]string{containerd.ConfigPath: "version = 2\nroot = '''\n[plugins.'io.containerd.grpc.v1.cri']\nenable_cdi = false\n'''\n"}, "cannot be edited"},
		"somebody else's file of ours": {map[string]string{containerd.ConfigPath: "version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n", "/etc/containerd/conf.d/99-enflame.toml": "version = 3\n"}, "not ours"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for path, text := range tt.files {
				hosttest.Write(t, root, path, text)
			}
			if changes, err := containerd.Configure(options(root)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%d changes, error %v, want one with %q", len(changes), err, tt.want)
			}
		})
	}
}

// TestMarksAreLost: containerd migrated the configuration to its next version, and the comments were gone.
func TestMarksAreLost(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	hosttest.Write(t, root, containerd.ConfigPath, hosts()["with comments"][containerd.ConfigPath])
	configure(t, options(root))
	var lines []string
	for line := range strings.Lines(snapshot(t, root)[containerd.ConfigPath]) {
		line, _, _ = strings.Cut(line, "#")
		lines = append(lines, strings.TrimSpace(line))
	}
	hosttest.Write(t, root, containerd.ConfigPath, strings.Join(lines, "\n"))
	if n := configure(t, options(root)); n != 0 {
		t.Errorf("%d files changed, and all was there", n)
	}
	o := options(root)
	o.SystemdCgroup = &no
	if _, err := containerd.Configure(o); err == nil {
		t.Error("no error, and another setting is wanted")
	}
	if _, err := containerd.Unconfigure(o); err == nil {
		t.Error("no error, and the runtime stays")
	}
}

func TestSystemdCgroup(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if systemd, known, err := containerd.SystemdCgroup(root); systemd || known || err != nil {
		t.Errorf("no file: %t, %t, %v", systemd, known, err)
	}
	hosttest.Write(t, root, containerd.ConfigPath, hosts()["the default is another"][containerd.ConfigPath])
	if systemd, known, err := containerd.SystemdCgroup(root); !systemd || !known || err != nil {
		t.Errorf("crun: %t, %t, %v", systemd, known, err)
	}
	o := options(root)
	o.SystemdCgroup, o.SetAsDefault = &no, true
	configure(t, o)
	if systemd, _, err := containerd.SystemdCgroup(root); !systemd || err != nil {
		t.Errorf("our own runtime counts as the host's: %t, %v", systemd, err)
	}
}

func TestCDIEnabled(t *testing.T) {
	t.Parallel()
	before := map[string]bool{"no file": true, "version 3": true, "version 4 with a folder": true, "version 3 with an empty folder": true}
	for name, files := range hosts() {
		root := t.TempDir()
		for path, text := range files {
			hosttest.Write(t, root, path, text)
		}
		if on, err := containerd.CDIEnabled(root); err != nil || on != before[name] {
			t.Errorf("%s: %t, %v", name, on, err)
		}
		configure(t, options(root))
		if on, err := containerd.CDIEnabled(root); err != nil || !on {
			t.Errorf("%s, configured: %t, %v", name, on, err)
		}
	}
}

// FuzzThereAndBack checks that whatever text can be edited is given back byte for byte.
func FuzzThereAndBack(f *testing.F) {
	for _, files := range hosts() {
		f.Add(files[containerd.ConfigPath])
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "enflame-ctk") || strings.Contains(text, "imports") {
			return // our own marks, or files outside
		}
		root := t.TempDir()
		hosttest.Write(t, root, containerd.ConfigPath, text)
		changes, err := containerd.Configure(options(root))
		if err != nil {
			return
		}
		enginetest.Apply(t, changes, nil)
		unconfigure(t, options(root))
		if diff := cmp.Diff(text, snapshot(t, root)[containerd.ConfigPath]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
