package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/scheduler/gcumap"
	"github.com/topscloud/topscloud/scheduler/surveytest"
)

// run runs the plugin against a cluster of one machine.
func run(t *testing.T, env map[string]string, args ...string) (string, error) {
	t.Helper()
	client := fake.NewClientset(surveytest.NewHost("t20x4", "n1").Object())
	return execute(t, client, "", env, args...)
}

func TestMapPicture(t *testing.T) {
	out, err := run(t, nil, "map")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"n1 · ", "4 × T20", "card 3 T20", "4 cards: 4 free", "cluster · 1 node"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("colour without a terminal")
	}
}

func TestMapFlags(t *testing.T) {
	const escape = "\x1b["
	tests := map[string]struct {
		args          []string
		env           map[string]string
		has, not, err string
	}{
		"colour when told so":               {args: []string{"map", "--color=always"}, has: escape},
		"told so weighs more than NO_COLOR": {args: []string{"map", "--color=always"}, env: map[string]string{"NO_COLOR": "1"}, has: escape},
		"never":                             {args: []string{"map", "--color=never"}, not: escape},
		"another word for colour":           {args: []string{"map", "--color=yes"}, err: `--color "yes": want auto, always or never`},
		"ascii":                             {args: []string{"map", "--ascii"}, has: "|- card 0", not: "├"},
		"wide":                              {args: []string{"map", "-o", "wide"}, has: "GCU-"},
		"an output that there is not":       {args: []string{"map", "-o", "table"}, err: `--output "table": want wide, json or yaml`},
		"a node by name":                    {args: []string{"map", "n1"}, has: "n1 · "},
		"a node that does not exist":        {args: []string{"map", "n2"}, err: `get node n2: nodes "n2" not found`},
		"another resource, so no cards":     {args: []string{"map", "--resource=acme.com/npu"}, has: "label acme.com/npu.present=true"},
		"a resource that is none":           {args: []string{"map", "--resource=npu"}, err: `--resource: resource "npu"`},
		"the help names the rights":         {args: []string{"map", "--help"}, has: "Rights needed: list on nodes"},
		"the help speaks of kubectl":        {args: []string{"map", "--help"}, has: "kubectl gcu map [node...]"},
		"version":                           {args: []string{"--version"}, has: "kubectl-gcu "},
		"a verb that there is not":          {args: []string{"mpa"}, err: "unknown command"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			out, err := run(t, tc.env, tc.args...)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out, tc.has) || tc.not != "" && strings.Contains(out, tc.not) {
				t.Errorf("want %q and no %q in\n%s", tc.has, tc.not, out)
			}
		})
	}
}

// JSON and YAML are one format.
func TestMapFormats(t *testing.T) {
	var fromJSON, fromYAML gcumap.Map
	for output, m := range map[string]*gcumap.Map{"json": &fromJSON, "yaml": &fromYAML} {
		out, err := run(t, nil, "map", "-o", output)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict([]byte(out), m); err != nil {
			t.Fatalf("%s: %v", output, err)
		}
		if m.APIVersion != gcumap.APIVersion || m.Kind != gcumap.Kind || m.Totals.Cards != 4 {
			t.Errorf("%s: %s", output, out)
		}
	}
	a, _ := json.Marshal(fromJSON)
	b, _ := json.Marshal(fromYAML)
	if !bytes.Equal(a, b) {
		t.Errorf("json %s, yaml %s", a, b)
	}
}

// The flags that reach a cluster are kubectl's.
func TestKubeFlags(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	text := `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: a, context: {cluster: c, user: u, namespace: from-context}}
- {name: b, context: {cluster: c, user: u}}
current-context: a
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want string
	}{
		"the current context": {[]string{"--kubeconfig", config}, "from-context"},
		"another context":     {[]string{"--kubeconfig", config, "--context", "b"}, "default"},
		"a namespace":         {[]string{"--kubeconfig", config, "-n", "mine"}, "mine"},
	}
	for name, tc := range tests {
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		connect := kubeFlags(f)
		if err := f.Parse(tc.args); err != nil {
			t.Fatal(err)
		}
		if _, namespace, err := connect(); err != nil || namespace != tc.want {
			t.Errorf("%s: namespace %q, %v, want %q", name, namespace, err, tc.want)
		}
	}
}
