package manifests_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/manifests"
)

// The policies name each record key of the contract in both of their lists, and with other names no
// default name is left.
func TestRecordPolicyNamesEveryKey(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"enflame.com/gcu", "acme.com/npu"} {
		names, err := contract.NewNames(resource)
		if err != nil {
			t.Fatal(err)
		}
		text, err := manifests.RecordPolicy(names)
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string][]string{
			"gcu-pod-records":  names.RecordKeys(),
			"gcu-node-devices": {names.DevicesKey, names.SharedCapacityKey},
		}
		seen := 0
		for _, doc := range strings.Split(string(text), "\n---\n") {
			var p admissionv1.ValidatingAdmissionPolicy
			if err := yaml.UnmarshalStrict([]byte(doc), &p); err != nil || p.Kind != "ValidatingAdmissionPolicy" {
				continue
			}
			seen++
			lists := []string{p.Spec.MatchConditions[0].Expression}
			for _, v := range p.Spec.Variables {
				if v.Name == "keys" {
					lists = append(lists, v.Expression)
				}
			}
			for _, list := range lists {
				for _, key := range keys[p.Name] {
					if !strings.Contains(list, "'"+key+"'") {
						t.Errorf("%s, %s: key %s is missing in %s", resource, p.Name, key, list)
					}
				}
			}
		}
		if seen != len(keys) {
			t.Errorf("%s: %d policies, want %d", resource, seen, len(keys))
		}
		if resource != "enflame.com/gcu" && strings.Contains(string(text), "enflame.com/") {
			t.Errorf("%s: a default name is left", resource)
		}
	}
}
