package command

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/exporter/sampler"
)

func noEnv(string) string { return "" }

func once(t *testing.T, getenv func(string) string, args ...string) (string, error) {
	t.Helper()
	cmd := New(getenv)
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append([]string{"--once", "--device-source=sim", "--machine=s60x8", "--node-name=n1"}, args...))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestOnce(t *testing.T) {
	t.Parallel()
	out, err := once(t, noEnv, "--pods=false")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`enflame_gcu_count{host="n1"} 8`, `enflame_gcu_exporter_up{host="n1"} 1`, `name="Enflame S60"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "\nenflame_gcu_up{"); n != 8 {
		t.Errorf("%d cards, want 8", n)
	}
	if strings.Contains(out, "power_watts") {
		t.Error("base units are told, which nobody asked for")
	}
	if strings.Contains(out, "attribution") {
		t.Error("something is said of pods, which was switched off")
	}
}

func TestOnceInBaseUnits(t *testing.T) {
	t.Parallel()
	out, err := once(t, noEnv, "--pods=false", "--base-units")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"enflame_gcu_power_watts{", `domain="core"`, "enflame_gcu_memory_usage_ratio{"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

// Processes of a host whose /proc is mounted somewhere, and of one whose is not.
func TestOnceWithProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("faults", "process 3 4711 2048\n")
	args := []string{"--host-root=" + dir, "--control-file=" + filepath.Join(dir, "faults"), "--pods=false"}
	out, err := once(t, noEnv, args...)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, `enflame_gcu_process_mapping_available{host="n1"} 0`) || strings.Contains(out, "process_memory_bytes") {
		t.Errorf("processes of a host that cannot be seen:\n%s", out)
	}
	write("proc/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 18 0 0\n")
	write("proc/uptime", "5000.00 1.00\n")
	write("proc/4711/stat", "4711 (train) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 100 1 1\n")
	write("proc/4711/cgroup", "0::/system.slice/a.service\n")
	if out, err = once(t, noEnv, args...); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`process_mapping_available{host="n1"} 1`, `pid="4711"`, `process="train"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

// Neither agent nor kubelet is there: all cards are, and it is told who is missing.
func TestOnceWithoutAgentAndKubelet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := once(t, noEnv, "--book-socket="+filepath.Join(dir, "book"), "--pod-resources-socket="+filepath.Join(dir, "kubelet"), "--host-root="+dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`attribution_up{host="n1",source="agent"} 0`, `attribution_up{host="n1",source="kubelet"} 0`, `enflame_gcu_count{host="n1"} 8`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}

func TestBadFlags(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		env  map[string]string
		want string
	}{
		"pods":            {args: []string{"--pods=maybe"}, want: "want true or false"},
		"MONIT_PODS":      {env: map[string]string{"MONIT_PODS": "x"}, want: "MONIT_PODS"},
		"path":            {args: []string{"--web.telemetry-path=metrics"}, want: "below /"},
		"requests":        {args: []string{"--web.max-requests=-1"}, want: "--web.max-requests -1"},
		"interval":        {args: []string{"--sample-interval=0s"}, want: "--sample-interval 0s"},
		"socket":          {args: []string{"--book-socket=book"}, want: "--book-socket"},
		"age":             {args: []string{"--attribution-max-age=0s"}, want: "--attribution-max-age 0s"},
		"level":           {args: []string{"--log.level=loud"}, want: "debug, info, warn or error"},
		"both":            {args: []string{"--collector.memory", "--no-collector.memory"}, want: "--no-collector.memory"},
		"nothing":         {args: []string{"--collector.disable-defaults"}, want: "at least one"},
		"unknown machine": {args: []string{"--machine=s61"}, want: "s60x8"},
		"node":            {args: []string{"--node-name="}, want: "--node-name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := once(t, func(k string) string { return tt.env[k] }, tt.args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestGroupsByFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--collector.disable-defaults --collector.memory --collector.usage": "memory usage",
		"--no-collector.memory": "allocation clock cluster_usage count ecc error_records health info interconnect pcie pg_usage power processes rma sample sip_usage temperature usage vgcu virt_mode",
	} {
		f := &flags{}
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		f.add(set, noEnv)
		if err := set.Parse(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		got, err := f.groups()
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v, want %s", args, got, err, want)
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	cards, err := source.Open(source.Options{Source: source.Sim, Machine: "t10x8"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sampler.New(sampler.Options{Source: cards})
	if err != nil {
		t.Fatal(err)
	}
	e := &exporter{
		f: &flags{node: "n1", path: "/metrics", maxRequests: 2}, groups: []string{"count", "memory", "usage"},
		logger: slog.New(slog.DiscardHandler), sampler: s,
	}
	h, err := e.handler()
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if code, _ := get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz before the first look: %d", code)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	running.Go(func() { e.pages.run(ctx, s, nil, e.looked) })
	defer func() {
		cancel()
		running.Wait()
		if err := cards.Close(); err != nil {
			t.Error(err)
		}
	}()
	for deadline := time.Now().Add(time.Minute); !e.pages.ready(); {
		if time.Now().After(deadline) {
			t.Fatal("the cards were not looked at")
		}
		runtime.Gosched()
	}
	for _, tt := range []struct {
		path      string
		code      int
		has, lack string
	}{
		{"/metrics", 200, "enflame_gcu_usage{", "enflame_gcu_clock{"},
		{"/metrics", 200, "go_goroutines", ""},
		{"/metrics?collect[]=memory", 200, "enflame_gcu_memory_total_bytes{", "enflame_gcu_usage{"},
		{"/metrics?collect[]=memory", 200, "", "go_goroutines"},
		{"/metrics?collect[]=memory", 200, `scrape_collector_success{collector="memory"} 1`, `collector="usage"`},
		{"/metrics?collect[]=clock", 400, "[count memory usage]", ""},
		{"/", 200, "gcu-exporter", ""},
		{"/healthz", 200, "ok", ""},
		{"/readyz", 200, "ok", ""},
		{"/nothing", 404, "", ""},
	} {
		code, body := get(tt.path)
		if code != tt.code || !strings.Contains(body, tt.has) || tt.lack != "" && strings.Contains(body, tt.lack) {
			t.Errorf("%s: %d, want %d with %q and without %q:\n%s", tt.path, code, tt.code, tt.has, tt.lack, body)
		}
	}
}
