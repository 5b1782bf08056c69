package manifests_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// plugin is what krew reads of a manifest; other fields are mistakes.
type plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
			Files  []struct {
				From string `json:"from"`
				To   string `json:"to"`
			} `json:"files"`
		} `json:"platforms"`
	} `json:"spec"`
}

// The krew manifest parses, and its version, addresses, sums and platforms agree with each other, with
// the changelog and with the manual.
func TestKrewManifest(t *testing.T) {
	t.Parallel()
	var p plugin
	if err := yaml.UnmarshalStrict([]byte(file(t, "krew/gcu.yaml")), &p); err != nil {
		t.Fatal(err)
	}
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" || p.Metadata.Name != "gcu" {
		t.Errorf("%s %s %s: not a manifest of plugin gcu", p.APIVersion, p.Kind, p.Metadata.Name)
	}
	if n := len(p.Spec.ShortDescription); n == 0 || n > 60 || strings.HasSuffix(p.Spec.ShortDescription, ".") {
		t.Errorf("short description %q: krew wants a phrase of at most 60 characters", p.Spec.ShortDescription)
	}
	version := "v0.0.0"
	if m := regexp.MustCompile(`(?m)^## (v\d+\.\d+\.\d+)`).FindStringSubmatch(file(t, "../CHANGELOG.md")); m != nil {
		version = m[1]
	}
	if p.Spec.Version != version {
		t.Errorf("version %s: the changelog's newest is %s", p.Spec.Version, version)
	}
	manual := file(t, "../docs/kubectl-gcu.md")
	seen := map[string]bool{}
	sum := regexp.MustCompile(`^[0-9a-f]{64}$`)
	for _, at := range p.Spec.Platforms {
		system, arch := at.Selector.MatchLabels["os"], at.Selector.MatchLabels["arch"]
		platform := system + "/" + arch
		if seen[platform] || system == "" || arch == "" {
			t.Errorf("platform %s: incomplete, or there twice", platform)
		}
		seen[platform] = true
		if !strings.Contains(manual, platform) {
			t.Errorf("docs/kubectl-gcu.md does not name %s", platform)
		}
		if want := fmt.Sprintf("/download/%s/kubectl-gcu_%s_%s_%s.tar.gz", version, version, system, arch); !strings.HasSuffix(at.URI, want) {
			t.Errorf("%s: uri %s: want it to end in %s", platform, at.URI, want)
		}
		if none := strings.Trim(at.SHA256, "0") == ""; !sum.MatchString(at.SHA256) || none != (version == "v0.0.0") {
			t.Errorf("%s: sum %s", platform, at.SHA256)
		}
		if at.Bin != "kubectl-gcu" {
			t.Errorf("%s: bin %s", platform, at.Bin)
		}
	}
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		if !seen[platform] {
			t.Errorf("%s is missing", platform)
		}
	}
}

func file(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
