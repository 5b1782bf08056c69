package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/scheduler/config"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	weights := placement.Weights{Topology: 35, Packing: 30, Intact: 25, RightSize: 10}
	tests := map[string]struct {
		text     string
		resource string
		policy   share.Policy
		weights  placement.Weights
		timeout  time.Duration
	}{
		"nothing":               {"", "enflame.com/gcu", share.Binpack, weights, time.Minute},
		"the version alone":     {"apiVersion: gcufit.topscloud.dev/v1\nkind: GCUFitArgs\n", "enflame.com/gcu", share.Binpack, weights, time.Minute},
		"everything":            {"resource: acme.com/npu\ndefaultPolicy: spread\nrecordTimeout: 90s\nweights: {topology: 1, packing: 0, intact: 2, rightSize: 100}", "acme.com/npu", share.Spread, placement.Weights{Topology: 1, Intact: 2, RightSize: 100}, 90 * time.Second},
		"one weight":            {"weights: {packing: 0}", "enflame.com/gcu", share.Binpack, placement.Weights{Topology: 35, Intact: 25, RightSize: 10}, time.Minute},
		"JSON as the API sends": {`{"kind":"GCUFitArgs","defaultPolicy":"binpack"}`, "enflame.com/gcu", share.Binpack, weights, time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := config.Decode([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if got.Names.ResourceWhole != test.resource || got.DefaultPolicy != test.policy || got.RecordTimeout != test.timeout {
				t.Errorf("%+v of %s", got, got.Names.ResourceWhole)
			}
			if diff := cmp.Diff(test.weights, got.Weights); diff != "" {
				t.Errorf("weights (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, want string }{
		"an unknown field":          {"policy: spread", `unknown field "policy"`},
		"a field twice":             {"resource: a.b/c\nresource: a.b/c", "already set"},
		"another version":           {"apiVersion: gcufit.topscloud.dev/v2", `apiVersion "gcufit.topscloud.dev/v2": want gcufit.topscloud.dev/v1`},
		"another kind":              {"kind: NodeResourcesFitArgs", `kind "NodeResourcesFitArgs": want GCUFitArgs`},
		"an alias without domain":   {"resourceAlias: gcu", `resourceAlias: Invalid value: "gcu": resource alias "gcu": want <dns domain>/<lower-case word>`},
		"the resource as its alias": {"resourceAlias: enflame.com/gcu", "want another name than the resource's own"},
		"a resource without domain": {"resource: gcu", `resource: Invalid value: "gcu"`},
		"an unknown policy":         {"defaultPolicy: pack", `defaultPolicy: Unsupported value: "pack": supported values: "binpack", "spread"`},
		"a negative weight":         {"weights: {topology: -1}", "weights.topology: Invalid value: -1: want 0 to 100"},
		"a weight too large":        {"weights: {rightSize: 101}", "weights.rightSize: Invalid value: 101: want 0 to 100"},
		"no weight at all":          {"weights: {topology: 0, packing: 0, intact: 0, rightSize: 0}", "at least one weight must be above 0"},
		"a time too short":          {"recordTimeout: 1s", `recordTimeout: Invalid value: "1s": want 5s to 1h`},
		"a time too long":           {"recordTimeout: 2h", "want 5s to 1h"},
		"a time without unit":       {"recordTimeout: 60", "cannot unmarshal"},
		"no text at all":            {"{", "read GCUFitArgs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Decode([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want … %s …", err, test.want)
			}
		})
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	if _, err := config.Read(nil); err != nil {
		t.Error(err)
	}
	if got, err := config.Read(&runtime.Unknown{Raw: []byte(`{"defaultPolicy":"spread"}`)}); err != nil || got.DefaultPolicy != share.Spread {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := config.Read(&v1.Pod{}); err == nil || !strings.Contains(err.Error(), "*v1.Pod") {
		t.Errorf("got %v", err)
	}
}

// Decode never panics, and what it accepts is complete and in range.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("{}"))
	f.Add([]byte("resource: acme.com/npu\ndefaultPolicy: spread\nweights: {topology: 1}\nrecordTimeout: 30s\n"))
	f.Add([]byte("weights: {topology: 0, packing: 0, intact: 0, rightSize: 0}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		args, err := config.Decode(text)
		if err != nil {
			return
		}
		w := args.Weights
		if args.Names == nil || args.RecordTimeout <= 0 || w.Topology+w.Packing+w.Intact+w.RightSize <= 0 {
			t.Errorf("accepted %q as %+v", text, args)
		}
	})
}
