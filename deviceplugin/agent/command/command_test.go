package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

func parse(t *testing.T, env map[string]string, args ...string) (*flags, error) {
	t.Helper()
	f := &flags{}
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.add(set, func(key string) string { return env[key] })
	return f, set.Parse(args)
}

func TestFlags(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		want string // part of the error
	}{
		"the defaults":           {nil, ""},
		"a unit of the CR":       {[]string{"--memory-unit=0.01"}, ""},
		"another unit":           {[]string{"--memory-unit=2"}, `--memory-unit "2": want 1, 0.1, 0.01 or 0.001 (GiB)`},
		"a resource too many":    {[]string{"--resources=whole,vgcu"}, `--resources "vgcu": want whole, memory or slices`},
		"no resource":            {[]string{"--resources="}, "want"},
		"health check by a word": {[]string{"--health-check=maybe"}, `--health-check "maybe": want true or false`},
		"no node":                {[]string{"--node-name="}, "--node-name"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := parse(t, map[string]string{"NODE_NAME": "n1"}, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.agentOptions()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// Flags and variables of older manifests mean what they meant.
func TestOlderManifests(t *testing.T) {
	t.Parallel()
	f, err := parse(t, map[string]string{"NODE_NAME": "n1", "DP_DISABLE_HEALTHCHECKS": "all", "GCU_HOST_ROOT": "/host"},
		"--slice-count=4", "--pass-device-specs", "--memory-unit=0.1", "--resources=slices,whole,slices")
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.agentOptions()
	if err != nil {
		t.Fatal(err)
	}
	if !o.Health.Off || o.SliceCount != 4 || !o.PassDeviceSpecs || o.UnitMiB != 102 || o.HostRoot != "/host" {
		t.Errorf("%+v", o)
	}
	if len(o.Serve) != 2 || o.Serve[0] != share.Whole || o.Serve[1] != share.Slices {
		t.Errorf("serves %v", o.Serve)
	}
	if f, err = parse(t, nil, "--health-check=true"); err != nil || f.healthCheck != "true" {
		t.Error(f.healthCheck, err)
	}
}

func TestReadNames(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want, fail string }{
		"no file":             {want: "enflame.com/gcu"},
		"the vendor's file":   {text: `{"version":"1","registerResource":["enflame.com/gcu","x"],"mainDevice":["/dev/gcu"]}`, want: "enflame.com/gcu"},
		"another name":        {text: `{"registerResource":["enflame-tech.com/gcu"]}`, want: "enflame-tech.com/gcu"},
		"nothing registered":  {text: `{}`, want: "enflame.com/gcu"},
		"no JSON":             {text: `{`, fail: "topscloud.json"},
		"a name that is none": {text: `{"registerResource":["gcu"]}`, fail: "registerResource"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			if tt.text != "" {
				path := filepath.Join(root, contract.TopsCloudConfigPath)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(tt.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			names, err := contract.ReadNames(root)
			switch {
			case tt.fail != "":
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Errorf("error %v, want one with %q", err, tt.fail)
				}
			case err != nil || names.ResourceWhole != tt.want:
				t.Errorf("%v, %v", names, err)
			}
		})
	}
}
