package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/sandbox/binaries"
)

const alerts = "../../manifests/alerts"

// prometheus returns the folder of prometheus and promtool.
func prometheus(t *testing.T) string {
	t.Helper()
	dir, err := binaries.EnsurePrometheus(t.Context(), binaries.Options{Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRules runs promtool: its linter, and the unit tests of the alerts.
func TestRules(t *testing.T) {
	t.Parallel()
	promtool := filepath.Join(prometheus(t), binaries.Promtool)
	for _, args := range [][]string{
		{"check", "rules", "--lint=all", "--lint-fatal", "gcu-rules.yaml"},
		{"test", "rules", "gcu-rules.test.yaml"},
	} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = alerts
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// groups is a rule file, as far as the tests look at it.
type groups struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Record      string            `json:"record"`
	Expr        string            `json:"expr"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func load(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(alerts, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

var headings = regexp.MustCompile(`(?m)^## (\w+)$`)

// TestEachAlert wants a unit test, a section of the runbook, a link to it, and a severity for each alert, and no
// section of an alert that is no more.
func TestEachAlert(t *testing.T) {
	t.Parallel()
	var file groups
	load(t, "gcu-rules.yaml", &file)
	var tests struct {
		Tests []struct {
			Name string `json:"name"`
		} `json:"tests"`
	}
	load(t, "gcu-rules.test.yaml", &tests)
	tested := map[string]bool{}
	for _, one := range tests.Tests {
		tested[one.Name] = true
	}
	runbook, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	for _, m := range headings.FindAllStringSubmatch(string(runbook), -1) {
		explained[m[1]] = true
	}
	seen := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			seen++
			link := "https://github.com/topscloud/topscloud/blob/main/docs/runbook.md#" + strings.ToLower(r.Alert)
			switch {
			case !tested[r.Alert]:
				t.Errorf("%s has no unit test in gcu-rules.test.yaml", r.Alert)
			case !explained[r.Alert]:
				t.Errorf("%s has no section in docs/runbook.md", r.Alert)
			case r.Annotations["runbook_url"] != link:
				t.Errorf("%s: runbook_url %q, want %q", r.Alert, r.Annotations["runbook_url"], link)
			case r.Labels["severity"] != "critical" && r.Labels["severity"] != "warning":
				t.Errorf("%s: severity %q, want critical or warning", r.Alert, r.Labels["severity"])
			case r.Annotations["summary"] == "" || r.Annotations["description"] == "":
				t.Errorf("%s: want a summary and a description", r.Alert)
			}
			delete(explained, r.Alert)
		}
	}
	if seen == 0 {
		t.Error("no alerts")
	}
	for name := range explained {
		t.Errorf("docs/runbook.md has a section %s, and there is no such alert", name)
	}
}

// TestPrometheusRule holds the object for prometheus-operator to the rule file.
func TestPrometheusRule(t *testing.T) {
	t.Parallel()
	var plain, object map[string]any
	load(t, "gcu-rules.yaml", &plain)
	load(t, "gcu-prometheusrule.yaml", &object)
	spec, _ := object["spec"].(map[string]any)
	if object["kind"] != "PrometheusRule" || !reflect.DeepEqual(spec, plain) {
		t.Errorf("gcu-prometheusrule.yaml has other groups than gcu-rules.yaml")
	}
}
