package arch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/topscloud/topscloud/internal/arch"
)

// TestImports applies the rules to the module.
func TestImports(t *testing.T) {
	packages := list(t)
	if len(packages) < 5 {
		t.Fatalf("go list found %d packages: want the whole module", len(packages))
	}
	for _, broken := range arch.Check(packages) {
		t.Error(broken)
	}
}

// TestMainIsShort keeps logic out of main packages, where no other package's test can reach it.
func TestMainIsShort(t *testing.T) {
	for _, p := range list(t) {
		if p.Name != "main" || !strings.Contains(p.ImportPath, "/cmd/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.Dir, "main.go"))
		if err != nil {
			t.Errorf("%s: %v", p.ImportPath, err)
			continue
		}
		if lines := bytes.Count(text, []byte("\n")); lines >= arch.MaxMainLines {
			t.Errorf("%s: main.go has %d lines: want fewer than %d", p.ImportPath, lines, arch.MaxMainLines)
		}
	}
}

// TestCheck shows that each rule catches what it forbids and lets pass what it allows.
func TestCheck(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		folder  string
		imports []string // below the module unless they start with "="
		test    bool     // imported by a test file
		want    string   // part of the only finding; empty means none
	}{
		"a plugin may use the ledger":                    {folder: "scheduler/gcufit", imports: []string{"gcushare/ledger"}},
		"a room may use itself":                          {folder: "scheduler/gcufit", imports: []string{"scheduler/feed"}},
		"pure rooms know nothing of the scheduler":       {folder: "gcushare/ledger", imports: []string{"scheduler/feed"}, want: "imports point down only"},
		"rooms of one level do not know each other":      {folder: "scheduler/gcufit", imports: []string{"exporter/collector"}, want: "of another room"},
		"the lowest rooms do not know each other":        {folder: "internal/app", imports: []string{"internal/contract"}, want: "of another room"},
		"a command may use its own room":                 {folder: "scheduler/cmd/gcu-scheduler", imports: []string{"scheduler/gcufit", "internal/app"}},
		"a command may read the ledger":                  {folder: "scheduler/cmd/kubectl-gcu", imports: []string{"gcushare/ledger"}},
		"a command may not use another room":             {folder: "exporter/cmd/gcu-exporter", imports: []string{"scheduler/feed"}, want: "of another room"},
		"the node agent serves both plugins":             {folder: "deviceplugin/agent", imports: []string{"gcushare/plugin"}},
		"nobody else bridges those rooms":                {folder: "deviceplugin/plugin", imports: []string{"gcushare/plugin"}, want: "of another room"},
		"no room may import a command":                   {folder: "scheduler/gcufit", imports: []string{"scheduler/cmd/gcu-scheduler"}, want: "imports point down only"},
		"the sandbox may use anything":                   {folder: "sandbox/demo", imports: []string{"scheduler/gcufit", "topology", "manifests"}},
		"tests obey the map of rooms":                    {folder: "scheduler/gcufit", imports: []string{"sandbox"}, test: true, want: "imports point down only"},
		"tests may link the real scheduler":              {folder: "scheduler/gcufit", imports: []string{"=k8s.io/kubernetes/pkg/scheduler"}, test: true},
		"plugin code does not link Kubernetes":           {folder: "scheduler/gcufit", imports: []string{"=k8s.io/kubernetes/pkg/scheduler"}, want: "links k8s.io/kubernetes/pkg/scheduler"},
		"the scheduler command links Kubernetes":         {folder: "scheduler/cmd/gcu-scheduler", imports: []string{"=k8s.io/kubernetes/cmd/kube-scheduler/app"}},
		"the ledger does not talk to the API":            {folder: "gcushare/ledger", imports: []string{"=k8s.io/client-go/kubernetes"}, want: "links k8s.io/client-go/kubernetes"},
		"a name that only starts alike is another":       {folder: "gcushare/ledger", imports: []string{"=k8s.io/client-gone"}},
		"controller-runtime is the operator's":           {folder: "scheduler/feed", imports: []string{"=sigs.k8s.io/controller-runtime/pkg/client"}, want: "links sigs.k8s.io/controller-runtime"},
		"the operator links controller-runtime":          {folder: "operator/controllers", imports: []string{"=sigs.k8s.io/controller-runtime/pkg/client"}},
		"the plugin starts no processes":                 {folder: "scheduler/gcufit", imports: []string{"=os/exec"}, want: "imports os/exec"},
		"the container runtime stays static":             {folder: "runtime/hook", imports: []string{"=github.com/ebitengine/purego"}, want: "links github.com/ebitengine/purego"},
		"the device library opens the vendor's":          {folder: "eflib/libefml", imports: []string{"=github.com/ebitengine/purego"}},
		"the sandbox starts processes":                   {folder: "sandbox/process", imports: []string{"=os/exec"}},
		"topology is of the standard library":            {folder: "topology", imports: []string{"=io/fs"}},
		"topology has no libraries":                      {folder: "topology", imports: []string{"=golang.org/x/exp/slices"}, want: "standard library only"},
		"a room nobody drew is a finding":                {folder: "helpers", want: "not on the map"},
		"a folder beside the known ones is a finding":    {folder: "internal/util", want: "not on the map"},
		"packages of other modules are not our business": {folder: "=golang.org/x/tools/cmd", imports: []string{"=os/exec"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := arch.Package{ImportPath: path(tt.folder)}
			for _, i := range tt.imports {
				if tt.test {
					p.TestImports = append(p.TestImports, path(i))
					continue
				}
				p.Imports = append(p.Imports, path(i))
				p.Deps = append(p.Deps, path(i))
			}
			got := arch.Check([]arch.Package{p})
			switch {
			case tt.want == "" && len(got) == 0:
			case tt.want != "" && len(got) == 1 && strings.Contains(got[0], tt.want):
			default:
				t.Errorf("Check() = %q, want %q", got, tt.want)
			}
		})
	}
}

// path completes a folder of the module; "=" marks a full import path.
func path(folder string) string {
	if full, ok := strings.CutPrefix(folder, "="); ok {
		return full
	}
	return arch.Module + "/" + folder
}

// list asks the go command for the packages of the module. What that reads is out of sight of go
// test's cache, so the folders are read here as well: a change in any of them makes a new run.
func list(t *testing.T) []arch.Package {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "bin") {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Name,Imports,TestImports,XTestImports,Deps", arch.Module+"/...")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &problems)
	}
	var out []arch.Package
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		var p arch.Package
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			t.Fatalf("go list: %v", err)
		}
		out = append(out, p)
	}
}
