package settings_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/settings"
)

func TestParse(t *testing.T) {
	t.Parallel()
	yes := true
	changed := settings.Default()
	changed.Runtime.AcceptEnvvar, changed.Runtime.Runtimes, changed.Runtime.TrustedNamespaces = &yes, []string{"/opt/crun"}, nil
	changed.Runtime.Debug = "/var/log/enflame.log"
	old := settings.Default()
	old.CLI = settings.CLI{Debug: "/var/log/cli.log", Environment: []string{"A=b"}, Ldconfig: "@/sbin/ldconfig"}
	changed.Runtime.TrustedNamespaces = []string{}
	tests := map[string]struct {
		text string
		want settings.Settings
		fail string
	}{
		"an empty file is the defaults": {want: settings.Default()},
		"a file of an older toolkit is read": {
			text: "[enflame-container-cli]\ndebug = '/var/log/cli.log'\nenvironment = ['A=b']\nldconfig = '@/sbin/ldconfig'\n[enflame-container-runtime]\n",
			want: old},
		"keys change the defaults": {
			text: "[enflame-container-runtime]\ndebug = '/var/log/enflame.log'\nruntimes = ['/opt/crun']\ntrusted-namespaces = []\naccept-visible-devices-envvar-when-unprivileged = true\n",
			want: changed},
		"an unknown key is refused": {text: "[enflame-container-runtime]\nacept = true\n", fail: "acept"},
		"an unknown section":        {text: "[nvidia]\n", fail: "nvidia"},
		"a value of another type":   {text: "[enflame-container-runtime]\nruntimes = 'runc'\n", fail: "string"},
		"no runtime":                {text: "[enflame-container-runtime]\nruntimes = []\n", fail: "runtimes"},
		"a relative runtime":        {text: "[enflame-container-runtime]\nruntimes = ['./runc']\n", fail: "./runc"},
		"an empty namespace":        {text: "[enflame-container-runtime]\ntrusted-namespaces = ['']\n", fail: "trusted-namespaces"},
		"a folder that climbs":      {text: "[enflame-container-runtime]\nlibrary-path = '/usr/../etc'\n", fail: "library-path"},
		"a relative log":            {text: "[enflame-container-runtime]\ndebug = 'log'\n", fail: "debug"},
		"no TOML":                   {text: "{", fail: "toml"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := settings.Parse([]byte(tt.text))
			if tt.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Errorf("error %v, want one with %q", err, tt.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestManual reads the file that the manual prints.
func TestManual(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/manual/container-toolkit.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(text), "```toml\n")
	block, _, found := strings.Cut(block, "```")
	got, err := settings.Parse([]byte(block))
	if err != nil || !found {
		t.Fatal(found, err)
	}
	no := false
	want := settings.Default()
	want.Runtime.Debug, want.Runtime.AcceptEnvvar = "/var/log/enflame-container-runtime.log", &no
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("besides debug and accept-…, the manual prints the defaults (-want +got):\n%s", diff)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	got, err := settings.Read(root)
	if diff := cmp.Diff(settings.Default(), got); err != nil || diff != "" {
		t.Errorf("without a file: %v (-want +got):\n%s", err, diff)
	}
	path := filepath.Join(root, contract.RuntimeConfigPath)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x = 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := settings.Read(root); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names %s", err, path)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("[enflame-container-runtime]\nruntimes = ['runc']\n")
	f.Add("[enflame-container-cli]\nldconfig = \"@/sbin/ldconfig\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := settings.Parse([]byte(text)); err == nil && len(s.Runtime.Runtimes) == 0 {
			t.Fatalf("%q gives no runtime", text)
		}
	})
}
