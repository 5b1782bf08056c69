package command

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/internal/contract"
)

var update = flag.Bool("update", false, "write the golden files of --dry-run")

func execute(t *testing.T, env map[string]string, args ...string) (string, error) {
	t.Helper()
	cmd := New(func(key string) string { return env[key] })
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestDryRun keeps what each made-up machine is labelled with.
func TestDryRun(t *testing.T) {
	t.Parallel()
	for _, machine := range sim.Presets() {
		got, err := execute(t, nil, "--dry-run", "--no-timestamp", "--device-source=sim", "--machine="+machine, "--host-root="+t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", machine+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", machine, diff)
		}
	}
}

func TestDryRunOfAHost(t *testing.T) {
	t.Parallel()
	m, err := sim.Preset("mixed")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := m.WriteSysfs(root); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, contract.TopsCloudConfigPath)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"registerResource":["acme.com/npu"]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := execute(t, map[string]string{"GCU_HOST_ROOT": root, "GFD_NO_TIMESTAMP": "1", "GFD_EXTRA_DOMAINS": contract.TKEDomain}, "--dry-run", "--device-source=sysfs")
	if err != nil || !strings.Contains(got, "acme.com/npu.S60.count=2\n") || !strings.Contains(got, "tke.cloud.tencent.com/npu.count=4\n") || strings.Contains(got, "timestamp") {
		t.Errorf("%v\n%s", err, got)
	}
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := execute(t, nil, "--dry-run", "--host-root="+root); err == nil || !strings.Contains(err.Error(), "topscloud.json") {
		t.Errorf("a file that is no JSON: %v", err)
	}
}

// Without an API server a features file can be written once, kept, and withdrawn.
func TestOneshot(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gcu")
	args := []string{"--device-source=sim", "--machine=s60x8", "--output-file=" + path, "--host-root=" + t.TempDir(), "--node-name=n1"}
	var first []byte
	for range 2 {
		if _, err := execute(t, nil, append(args, "--oneshot")...); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = text
		}
		if diff := cmp.Diff(string(first), string(text)); diff != "" || !strings.Contains(string(text), "enflame.com/gcu.memory=41984\n") {
			t.Errorf("the second time (-was +is):\n%s", diff)
		}
	}
	if _, err := execute(t, map[string]string{"GFD_OUTPUT": "auto"}, append(args, "--withdraw")...); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"an unknown output":        {args: []string{"--output=disk"}, want: `--output "disk": want one of features-file, node-feature, node-labels, auto`},
		"no node":                  {args: []string{"--node-name="}, want: "--node-name"},
		"a domain that is none":    {args: []string{"--extra-domains=a b"}, want: `--extra-domains "a b"`},
		"no time to sleep":         {args: []string{"--sleep-interval=0s"}, want: "--sleep-interval 0s: want more than 0"},
		"both kinds of timestamps": {args: []string{"--no-timestamp", "--refresh-timestamp"}, want: "want one of them"},
		"two ends":                 {args: []string{"--oneshot", "--dry-run"}, want: "want one of them"},
		"environment: a truth":     {env: map[string]string{"GFD_ONESHOT": "maybe"}, want: `environment GFD_ONESHOT "maybe": want true or false`},
		"environment: a time":      {env: map[string]string{"GFD_SLEEP_INTERVAL": "60"}, want: `environment GFD_SLEEP_INTERVAL "60": want a time such as 60s`},
		"an unknown source":        {args: []string{"--device-source=magic", "--oneshot"}, want: "want some of auto"},
		"no way to the API server": {args: []string{"--output=node-labels", "--device-source=sim", "--machine=mixed"}, want: "reach the API server"},
		"auto with nothing there": {args: []string{"--output=auto", "--device-source=sim", "--machine=mixed", "--output-file=/none/gcu", "--oneshot"},
			want: "no API server to reach, and no folder /none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"--host-root=" + t.TempDir(), "--node-name=n1", "--listen="}, tt.args...)
			if _, err := execute(t, tt.env, args...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// The whole program, until its context ends.
func TestServe(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gcu")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := New(func(string) string { return "" })
	cmd.SetArgs([]string{"--device-source=sim", "--machine=t10x8", "--output-file=" + path, "--host-root=" + t.TempDir(), "--node-name=n1", "--listen=" + address})
	done := make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	get := func(path string) (int, string) {
		response, err := http.Get("http://" + address + path)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return response.StatusCode, fmt.Sprint(string(text), err)
	}
	deadline := time.Now().Add(30 * time.Second)
	code, text := get("/readyz")
	for ; code != http.StatusOK && time.Now().Before(deadline); code, text = get("/readyz") {
		<-time.After(10 * time.Millisecond)
	}
	if code != http.StatusOK {
		t.Fatalf("not ready: %d %s", code, text)
	}
	if code, text := get("/metrics"); code != http.StatusOK || !strings.Contains(text, "\ngcu_feature_discovery_publishes_total 1\n") || !strings.Contains(text, "\ngcu_feature_discovery_labels 9\n") {
		t.Errorf("metrics %d:\n%s", code, text)
	}
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("healthz %d", code)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the file went with the process: %v", err)
	}
}
