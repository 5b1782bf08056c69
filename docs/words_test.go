package docs_test

import (
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

var names = contract.Default()

// TestEveryReasonIsExplained finds reasons of the scheduler that its manual does not have word for word.
func TestEveryReasonIsExplained(t *testing.T) {
	t.Parallel()
	manual := read(t, "scheduler.md")
	requests := []*share.Request{
		parse(t, map[string]string{"enflame.com/gcu": "2"}, map[string]string{names.TopologyKey: "same-switch"}),
		parse(t, map[string]string{"enflame.com/gcu": "8"}, nil),
		parse(t, map[string]string{"enflame.com/gcu-memory": "8"}, nil),
		parse(t, map[string]string{"enflame.com/gcu-memory": "8"}, map[string]string{names.CardsKey: "2"}),
	}
	for r := placement.Fit + 1; int(r) < placement.Reasons; r++ {
		if r == placement.NotResolvable {
			continue // a mark between the reasons
		}
		found := false
		for _, req := range requests {
			found = found || strings.Contains(manual, "`"+strings.TrimPrefix(r.Text(names, req), "node closed: ")+"`")
		}
		if !found {
			t.Errorf("scheduler.md does not explain %q", r.Text(names, requests[0]))
		}
	}
}

// TestRefusalsAreAsWritten compares the manual's refusals with what the parser says.
func TestRefusalsAreAsWritten(t *testing.T) {
	t.Parallel()
	manual := read(t, "scheduler.md")
	tests := map[string]struct{ limits, annotations map[string]string }{
		"bytes":                {map[string]string{"enflame.com/gcu-memory": "8Gi"}, nil},
		"too many cards":       {map[string]string{"enflame.com/gcu": "200"}, nil},
		"two kinds":            {map[string]string{"enflame.com/gcu": "1", "enflame.com/shared-gcu": "1"}, nil},
		"not a multiple":       {map[string]string{"enflame.com/gcu-memory": "15"}, map[string]string{names.CardsKey: "2"}},
		"no cards":             {map[string]string{"enflame.com/gcu-memory": "8"}, map[string]string{names.CardsKey: "0"}},
		"cards without shares": {map[string]string{"enflame.com/gcu": "2"}, map[string]string{names.CardsKey: "2"}},
		"policy":               {map[string]string{"enflame.com/gcu": "2"}, map[string]string{names.PolicyKey: "pack"}},
		"topology":             {map[string]string{"enflame.com/gcu": "2"}, map[string]string{names.TopologyKey: "switch"}},
		"uuids":                {map[string]string{"enflame.com/gcu": "2"}, map[string]string{names.UseUUIDKey: ""}},
	}
	for name, tt := range tests {
		_, err := share.Parse(names, pod(tt.limits, tt.annotations), share.Defaults{})
		if err == nil || !strings.Contains(manual, "`"+err.Error()+"`") {
			t.Errorf("%s: scheduler.md does not have %v", name, err)
		}
	}
}

// TestExamplesDecode reads the contract's examples with the decoders that readers use.
func TestExamplesDecode(t *testing.T) {
	t.Parallel()
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(read(t, "contract.md"), -1)
	decoders := []func(string) error{
		func(s string) error { _, err := contract.DecodeAllocation(s); return err },
		func(s string) error { _, err := contract.DecodeDevices(s); return err },
		func(s string) error { _, err := contract.DecodeCordon(s); return err },
		func(s string) error { _, err := contract.DecodePublishedLabels(s); return err },
	}
	if len(blocks) != len(decoders) {
		t.Fatalf("contract.md has %d examples: want %d", len(blocks), len(decoders))
	}
	for i, decode := range decoders {
		if err := decode(blocks[i][1]); err != nil {
			t.Errorf("example %d: %v\n%s", i+1, err, blocks[i][1])
		}
	}
}

func parse(t *testing.T, limits, annotations map[string]string) *share.Request {
	t.Helper()
	req, err := share.Parse(names, pod(limits, annotations), share.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func pod(limits, annotations map[string]string) *v1.Pod {
	list := v1.ResourceList{}
	for name, amount := range limits {
		list[v1.ResourceName(name)] = resource.MustParse(amount)
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Limits: list}}}},
	}
}
