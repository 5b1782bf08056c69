package binaries

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersionsAreThoseOfTheModule(t *testing.T) {
	t.Parallel()
	source, ok := FindSource()
	if !ok {
		t.Fatal("hack/kube/go.mod is not above this package")
	}
	for module, wants := range map[string][]string{
		"kube":       {"k8s.io/kubernetes " + KubernetesVersion, "go.etcd.io/etcd/server/v3 " + EtcdVersion},
		"containerd": {"github.com/containerd/containerd/v2 " + ContainerdVersion},
		"prometheus": {"github.com/prometheus/prometheus " + PrometheusVersion},
	} {
		b, err := os.ReadFile(filepath.Join(source, "hack", module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(b), want+"\n") {
				t.Errorf("hack/%s/go.mod does not require %s", module, want)
			}
		}
	}
}

// A source tree whose packages are tiny stands in for the real one.
func TestEnsureBuildsOnceWhatIsMissing(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	dir := filepath.Join(cache, Key())
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, target := range targets()[1:] {
		if err := os.WriteFile(filepath.Join(dir, target.name), []byte("kept"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	source := t.TempDir()
	kube := filepath.Join(source, "hack", "kube")
	if err := os.MkdirAll(kube, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"go.mod": "module go.etcd.io/etcd/server/v3\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(kube, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var log strings.Builder
	for range 2 {
		set, err := Ensure(context.Background(), Options{CacheRoot: cache, Source: source, Log: &log})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(set.Path(Etcd)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if n := strings.Count(log.String(), "built etcd"); n != 1 {
		t.Errorf("built %d times: want once; log:\n%s", n, &log)
	}
	if b, err := os.ReadFile(filepath.Join(dir, Kubectl)); err != nil || string(b) != "kept" {
		t.Errorf("kubectl was built again (%v)", err)
	}
}
