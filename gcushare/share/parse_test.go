package share_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

var names = ledgertest.Names

// limit adds a container with a limit as a user writes it.
func limit(container, name, quantity string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: container, Resources: v1.ResourceRequirements{
			Limits: v1.ResourceList{v1.ResourceName(name): resource.MustParse(quantity)},
		}})
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	memory, slices, whole := names.ResourceMemory, names.ResourceSlice, names.ResourceWhole
	one := func(k share.Kind, amount int64, cards int) []share.Container {
		return []share.Container{{Name: "app", Kind: k, Amount: amount, Cards: cards}}
	}
	tests := map[string]struct {
		options []func(*v1.Pod)
		want    *share.Request
	}{
		"a pod without limits asks for nothing":   {options: []func(*v1.Pod){ledgertest.App("app", memory, 0)}},
		"annotations alone ask for nothing":       {options: []func(*v1.Pod){ledgertest.Annotate(names.CardsKey, "2")}},
		"a limit of zero asks for nothing":        {options: []func(*v1.Pod){limit("app", memory, "0")}},
		"memory units":                            {options: []func(*v1.Pod){ledgertest.Memory(8)}, want: &share.Request{Containers: one(share.Memory, 8, 1), Totals: share.Totals{0, 8, 0, 0}}},
		"slices":                                  {options: []func(*v1.Pod){ledgertest.Slices(2)}, want: &share.Request{Containers: one(share.Slices, 2, 1), Totals: share.Totals{0, 0, 2, 0}}},
		"whole cards":                             {options: []func(*v1.Pod){ledgertest.Whole(4)}, want: &share.Request{Containers: one(share.Whole, 4, 4), Totals: share.Totals{4, 0, 0, 0}}},
		"gcu-cards spreads the amount":            {options: []func(*v1.Pod){ledgertest.Memory(8), ledgertest.Annotate(names.CardsKey, "4")}, want: &share.Request{Containers: one(share.Memory, 8, 4), Totals: share.Totals{0, 8, 0, 0}}},
		"a container without a limit is left out": {options: []func(*v1.Pod){ledgertest.App("log", memory, 0), ledgertest.Memory(3)}, want: &share.Request{Containers: one(share.Memory, 3, 1), Totals: share.Totals{0, 3, 0, 0}}},
		"a thousand units may be written 1k":      {options: []func(*v1.Pod){limit("app", memory, "1k")}, want: &share.Request{Containers: one(share.Memory, 1000, 1), Totals: share.Totals{0, 1000, 0}}},
		"policy, topology and uuids":              {options: []func(*v1.Pod){ledgertest.Memory(1), ledgertest.Annotate(names.PolicyKey, "spread"), ledgertest.Annotate(names.TopologyKey, "same-numa"), ledgertest.Annotate(names.UseUUIDKey, "b, GCU-a,b"), ledgertest.Annotate(names.NoUseUUIDKey, "c")}, want: &share.Request{Containers: one(share.Memory, 1, 1), Policy: share.Spread, Topology: share.SameNUMA, Use: []string{"GCU-a", "GCU-b"}, NoUse: []string{"GCU-c"}, Totals: share.Totals{0, 1, 0, 0}}},
		"kinds may be mixed over containers of a pod": {options: []func(*v1.Pod){ledgertest.Memory(2), ledgertest.App("b", slices, 1), ledgertest.Init("i", whole, 1)}, want: &share.Request{
			Containers: []share.Container{{Name: "i", Phase: share.Init, Kind: share.Whole, Amount: 1, Cards: 1}, {Name: "app", Kind: share.Memory, Amount: 2, Cards: 1}, {Name: "b", Kind: share.Slices, Amount: 1, Cards: 1}},
			Totals:     share.Totals{1, 2, 1, 0},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := share.Parse(names, ledgertest.Pod("p", test.options...), share.Defaults{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A second name of whole cards is a kind of its own towards kubelet, and whole cards in everything else.
func TestParseAlias(t *testing.T) {
	t.Parallel()
	const alias = "enflame-tech.com/gcu"
	both, err := names.WithAlias(alias)
	if err != nil {
		t.Fatal(err)
	}
	pod := ledgertest.Pod("p", ledgertest.App("app", alias, 2))
	if got, err := share.Parse(names, pod, share.Defaults{}); got != nil || err != nil {
		t.Errorf("without the alias: %+v, %v", got, err)
	}
	want := &share.Request{Containers: []share.Container{{Name: "app", Kind: share.Alias, Amount: 2, Cards: 2}}, Totals: share.Totals{share.Alias: 2}}
	got, err := share.Parse(both, pod, share.Defaults{})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if mib := got.Containers[0].PerCardMiB(32768, 1024, 6); mib != 32768 || got.Fractional() {
		t.Errorf("takes %d MiB of a card, fractional %v", mib, got.Fractional())
	}
	pod.Spec.Containers[0].Resources.Limits[v1.ResourceName(names.ResourceWhole)] = resource.MustParse("1")
	const refused = `limit enflame-tech.com/gcu "2": one container may ask for one kind only, and it also asks for enflame.com/gcu`
	if _, err := share.Parse(both, pod, share.Defaults{}); err == nil || err.Error() != refused {
		t.Errorf("both names: %v, want %s", err, refused)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	memory, whole := names.ResourceMemory, names.ResourceWhole
	annotated := func(key, value string) []func(*v1.Pod) {
		return []func(*v1.Pod){ledgertest.Memory(6), ledgertest.Annotate(key, value)}
	}
	tests := map[string]struct {
		options []func(*v1.Pod)
		unit    int64
		want    string
	}{
		"bytes for units":            {options: []func(*v1.Pod){limit("a", memory, "8Gi")}, want: `limit enflame.com/gcu-memory "8Gi": 8Gi is 8589934592 units of 1 GiB; write 8`},
		"bytes for small units":      {options: []func(*v1.Pod){limit("a", memory, "8Gi")}, unit: 102, want: `limit enflame.com/gcu-memory "8Gi": 8Gi is 8589934592 units of 102 MiB; write 81`},
		"mebibytes for units":        {options: []func(*v1.Pod){limit("a", memory, "512Mi")}, want: `limit enflame.com/gcu-memory "512Mi": 512Mi is 536870912 units of 1 GiB; write 1`},
		"too many units":             {options: []func(*v1.Pod){limit("a", memory, "10G")}, want: `limit enflame.com/gcu-memory "10G": 10G is 10000000000 units of 1 GiB; write 10`},
		"a part of a unit":           {options: []func(*v1.Pod){limit("a", memory, "1500m")}, want: `limit enflame.com/gcu-memory "1500m": want a whole number of memory units from 1 to 134217728`},
		"a negative amount":          {options: []func(*v1.Pod){limit("a", memory, "-2")}, want: `limit enflame.com/gcu-memory "-2": want a whole number of memory units from 1 to 134217728`},
		"more cards than a host has": {options: []func(*v1.Pod){ledgertest.Whole(129)}, want: `limit enflame.com/gcu "129": want a whole number of cards from 1 to 128`},
		"bytes for cards":            {options: []func(*v1.Pod){limit("a", whole, "1Gi")}, want: `limit enflame.com/gcu "1Gi": want a whole number of cards from 1 to 128`},
		"two kinds in one container": {options: []func(*v1.Pod){ledgertest.Memory(1), func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Limits[v1.ResourceName(whole)] = resource.MustParse("1")
		}}, want: `limit enflame.com/gcu-memory "1": one container may ask for one kind only, and it also asks for enflame.com/gcu`},
		"a policy with a typo":       {options: annotated(names.PolicyKey, "binpak"), want: `enflame.com/gcu-policy "binpak": want binpack, spread`},
		"an unknown topology":        {options: annotated(names.TopologyKey, "close"), want: `enflame.com/gcu-topology "close": want best-effort, same-switch, same-numa, none`},
		"cards that are no number":   {options: annotated(names.CardsKey, "two"), want: `enflame.com/gcu-cards "two": want a number of cards from 1 to 128`},
		"no cards":                   {options: annotated(names.CardsKey, "0"), want: `enflame.com/gcu-cards "0": want a number of cards from 1 to 128`},
		"cards that do not divide":   {options: annotated(names.CardsKey, "4"), want: `limit enflame.com/gcu-memory "6": want a multiple of enflame.com/gcu-cards, which is 4`},
		"cards for whole cards":      {options: []func(*v1.Pod){ledgertest.Whole(2), ledgertest.Annotate(names.CardsKey, "2")}, want: `enflame.com/gcu-cards "2": applies to enflame.com/gcu-memory and enflame.com/shared-gcu, which no container asks for`},
		"an empty uuid":              {options: annotated(names.UseUUIDKey, "a,,b"), want: `enflame.com/use-gcu-uuid "a,,b": want card uuids separated by commas`},
		"a uuid of the prefix alone": {options: annotated(names.NoUseUUIDKey, "GCU-"), want: `enflame.com/nouse-gcu-uuid "GCU-": want card uuids separated by commas`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, err := share.Parse(names, ledgertest.Pod("p", test.options...), share.Defaults{UnitMiB: test.unit})
			if err == nil {
				t.Fatalf("got %+v, want an error", req)
			}
			if err.Error() != test.want {
				t.Errorf("got  %s\nwant %s", err, test.want)
			}
		})
	}
}

// FuzzParse holds Parse to amounts that are in range and totals that are never below a container's part.
var longExponent = regexp.MustCompile(`[eE][-+]?[0-9]{4,}`)

func FuzzParse(f *testing.F) {
	for _, s := range []string{"8", "8Gi", "-1", "1e30", "0.5", "9223372036854775807", "1k"} {
		f.Add(s, s, "2", "binpack", "a,b", int64(1024))
	}
	f.Fuzz(func(t *testing.T, app, init, cards, policy, uuids string, unit int64) {
		pod := ledgertest.Pod("p", ledgertest.Annotate(names.CardsKey, cards), ledgertest.Annotate(names.PolicyKey, policy), ledgertest.Annotate(names.UseUUIDKey, uuids))
		add := func(list *[]v1.Container, text string) {
			// With an exponent of many digits Kubernetes' own parser works for minutes; no API server that lives
			// has such a quantity to give.
			if longExponent.MatchString(text) {
				return
			}
			if q, err := resource.ParseQuantity(text); err == nil {
				*list = append(*list, v1.Container{Name: "c" + text, Resources: v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceName(names.ResourceMemory): q}}})
			}
		}
		add(&pod.Spec.Containers, app)
		add(&pod.Spec.InitContainers, init)
		req, err := share.Parse(names, pod, share.Defaults{UnitMiB: unit})
		if err != nil || req == nil {
			return
		}
		for _, c := range req.Containers {
			switch {
			case c.Amount < 1 || c.Cards < 1 || c.Amount%int64(c.Cards) != 0:
				t.Errorf("container %+v", c)
			case req.Totals[c.Kind] < c.Amount:
				t.Errorf("totals %v are below container %+v", req.Totals, c)
			case c.PerCardMiB(contract.MaxCards, unit, 6) < 0 && unit > 0:
				t.Errorf("container %+v takes less than nothing", c)
			}
		}
	})
}
