package agent

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/eflib"
	gcuplugin "github.com/topscloud/topscloud/gcushare/plugin"
	"github.com/topscloud/topscloud/internal/contract"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	names := contract.Default()
	record := func(minors ...int) string {
		c := contract.ContainerAllocation{Name: "c"}
		for _, m := range minors {
			c.Cards = append(c.Cards, contract.CardAllocation{Minor: m, UUID: "GCU-x", MemoryMiB: 1024})
		}
		text, err := contract.EncodeAllocation(contract.Allocation{Node: "n", Containers: []contract.ContainerAllocation{c}})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Pods().Informer()
	pods, err := gcuplugin.NewNodePods(fake.NewClientset(), "n", informer)
	if err != nil {
		t.Fatal(err)
	}
	known := &v1.Pod{}
	known.UID, known.Name, known.Annotations = "known", "known", map[string]string{names.AllocationKey: record(1)}
	if err := informer.GetIndexer().Add(known); err != nil {
		t.Fatal(err)
	}
	a := &Agent{o: Options{Names: names}, pods: pods}
	for minor := range 3 {
		a.report.Cards = append(a.report.Cards, health.Card{Minor: minor, Present: true, Device: eflib.Device{
			Minor: minor, UUID: "GCU-x", Major: 240, DevMinor: uint32(minor),
		}})
	}
	gcu := func(minor int64) node { return node{path: "/dev/whatever", major: 240, minor: minor} }
	ctl := node{path: "/dev/gcuctl", major: 240, minor: 255}
	env := func(v string) []string { return []string{"A=b", "ENFLAME_VISIBLE_DEVICES=" + v} }
	tests := map[string]struct {
		uid       types.UID
		text      string
		container string
		env       []string
		devices   []node
		want      string
	}{
		"its card":                         {"u", record(1), "c", env("1"), []node{gcu(1), ctl}, ""},
		"two cards, in the record's order": {"u", record(2, 0), "c", env("2,0"), []node{gcu(0), gcu(2)}, ""},
		"another card":                     {"u", record(1), "c", env("1"), []node{gcu(2)}, "[2], its record names [1]"},
		"one card more":                    {"u", record(1), "c", env("1"), []node{gcu(1), gcu(2)}, "[1,2]"},
		"no card":                          {"u", record(1), "c", env("1"), []node{ctl}, "[], its record"},
		"an environment that says more":    {"u", record(1), "c", env("1,2"), []node{gcu(1)}, `"1,2"`},
		"an environment set after it":      {"u", record(1), "c", append(env("1"), "ENFLAME_VISIBLE_DEVICES=all"), []node{gcu(1)}, `"all"`},
		"a container without cards":        {"u", record(1), "other", nil, []node{gcu(0), gcu(1), gcu(2)}, ""},
		"a pod without record":             {"u", "", "c", nil, []node{gcu(0)}, ""},
		"a record nobody can read":         {"u", "{", "c", nil, nil, "not JSON"},
		"the API's record counts":          {"known", record(2), "c", env("1"), []node{gcu(1)}, ""},
		"a record that came later":         {"known", "", "c", env("2"), []node{gcu(2)}, "names [1]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := a.verify(made{pod: tt.uid, annotations: map[string]string{names.AllocationKey: tt.text}, container: tt.container, env: tt.env, devices: tt.devices})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
