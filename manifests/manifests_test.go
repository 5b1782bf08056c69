package manifests_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/manifests"
)

// TestSchedulerRightsNameEverything keeps the shipped rights free of wildcards and of what the
// scheduler never does.
func TestSchedulerRightsNameEverything(t *testing.T) {
	t.Parallel()
	text, err := manifests.SchedulerRBAC()
	if err != nil {
		t.Fatal(err)
	}
	roles := 0
	for _, doc := range strings.Split(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind != "ClusterRole" && role.Kind != "Role" {
			continue
		}
		roles++
		for _, r := range role.Rules {
			for _, list := range [][]string{r.APIGroups, r.Resources, r.Verbs, r.ResourceNames} {
				for _, word := range list {
					if strings.Contains(word, "*") {
						t.Errorf("%s %s: wildcard %q", role.Kind, role.Name, word)
					}
				}
			}
			for _, verb := range r.Verbs {
				if verb == "escalate" || verb == "bind" || verb == "impersonate" || verb == "deletecollection" {
					t.Errorf("%s %s: verb %s", role.Kind, role.Name, verb)
				}
			}
			for _, resource := range r.Resources {
				if resource == "secrets" || resource == "configmaps" || resource == "bindings" {
					t.Errorf("%s %s: resource %s", role.Kind, role.Name, resource)
				}
			}
		}
	}
	if roles != 2 {
		t.Errorf("%d roles: want 2", roles)
	}
}

func TestEveryExampleSaysWhatToExpect(t *testing.T) {
	t.Parallel()
	examples, err := manifests.Examples()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range examples {
		if !strings.HasPrefix(string(e.YAML), "# ") {
			t.Errorf("%s does not start with a comment", e.Name)
		}
		if !strings.Contains(string(e.YAML), "gcu.sandbox/expect: ") {
			t.Errorf("%s says nothing of what to expect", e.Name)
		}
	}
}
