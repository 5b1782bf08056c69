package labels_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/nfd/labels"
)

var (
	noon  = time.Date(2024, 5, 20, 6, 40, 27, 0, time.UTC)
	later = noon.Add(time.Hour)
)

const stamp = "2024-05-20-06-40-27"

var (
	s60 = labels.Card{Model: "S60", Product: "scorpio", Family: "SCORPIO", MemoryMiB: 42976}
	t10 = labels.Card{Model: "T10", Family: "LEO", MemoryMiB: 16384}
	t20 = labels.Card{Model: "T20", MemoryMiB: 32768}
)

func host(cards ...labels.Card) labels.Facts {
	return labels.Facts{Cards: cards, Driver: labels.Text{Value: "1.8.7"}, Machine: labels.Text{Value: "NF5468M5"}}
}

func unread(c labels.Card) labels.Card {
	c.Unread = true
	return c
}

// of returns the labels without timestamps, without the domain.
func of(t *testing.T, f labels.Facts, before labels.Set) map[string]string {
	t.Helper()
	return short(labels.Of(f, before, noon, labels.Options{NoTimestamp: true}).Labels)
}

func short(set labels.Set) map[string]string {
	out := map[string]string{}
	for key, value := range set {
		out[strings.TrimPrefix(key, "enflame.com/")] = value
	}
	return out
}

func TestLabels(t *testing.T) {
	t.Parallel()
	base := map[string]string{"gcu.driverVer": "1.8.7", "gcu.machine": "NF5468M5"}
	with := func(pairs ...string) map[string]string {
		out := maps.Clone(base)
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] == "" {
				delete(out, pairs[i])
				continue
			}
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	tests := map[string]struct {
		facts labels.Facts
		want  map[string]string
	}{
		"one model": {host(s60, s60), with("gcu.count", "2", "gcu.model", "S60", "gcu.product", "scorpio", "gcu.family", "SCORPIO",
			"gcu.memory", "41984", "gpu.model", "S60", "gpu.product", "scorpio")},
		"a model without a known product":                {host(t10), with("gcu.count", "1", "gcu.model", "T10", "gcu.family", "LEO", "gcu.memory", "16384", "gpu.model", "T10")},
		"a model of which nothing is known but its name": {host(labels.Card{Model: "S90"}), with("gcu.count", "1", "gcu.model", "S90", "gpu.model", "S90")},
		"a card that nobody knows":                       {host(labels.Card{}), with("gcu.count", "1")},
		"a known and an unknown one":                     {host(s60, labels.Card{MemoryMiB: 42976}), with("gcu.count", "2", "gcu.memory", "41984")},
		"two models":                                     {host(s60, t20, s60), with("gcu.count", "3", "gcu.S60.count", "2", "gcu.T20.count", "1")},
		"two models of one size": {host(t20, labels.Card{Model: "T21", MemoryMiB: 32768}),
			with("gcu.count", "2", "gcu.memory", "32768", "gcu.T20.count", "1", "gcu.T21.count", "1")},
		"one model in two sizes": {host(t20, labels.Card{Model: "T20", MemoryMiB: 65536}), with("gcu.count", "2", "gcu.model", "T20", "gpu.model", "T20")},
		"ECC off":                {host(labels.Card{Model: "S60", MemoryMiB: 49120}), with("gcu.count", "1", "gcu.model", "S60", "gpu.model", "S60", "gcu.memory", "48128")},
		"less than a GiB":        {host(labels.Card{Model: "X", MemoryMiB: 500}), with("gcu.count", "1", "gcu.model", "X", "gpu.model", "X", "gcu.memory", "500")},
		"an unread card":         {host(s60, unread(s60)), with("gcu.count", "2", "gcu.model", "S60", "gcu.product", "scorpio", "gcu.family", "SCORPIO", "gpu.model", "S60", "gpu.product", "scorpio")},
		"a silent card":          {labels.Facts{Cards: []labels.Card{s60}, Silent: 1}, map[string]string{"gcu.count": "2"}},
		"no driver version":      {labels.Facts{Cards: []labels.Card{{}}, Driver: labels.Text{Unread: true}, Machine: labels.Text{Value: "A B"}}, map[string]string{"gcu.count": "1", "gcu.machine": "A-B"}},
		"no card at all":         {host(), map[string]string{}},
		"vGCUs": {host(labels.Card{Model: "T20", MemoryMiB: 32768, Virtual: []labels.Virtual{{MemoryMiB: 8192}, {MemoryMiB: 8192}}}, t20),
			with("gcu.count", "2", "gcu.model", "T20", "gpu.model", "T20", "gcu.memory", "32768", "vgcu.present", "true", "vgcu.count", "2",
				"vgcu.memory", "8192", "vgcu.model", "T20", "vgcu.machine", "NF5468M5")},
		"vGCUs of two sizes": {host(labels.Card{Model: "T10", Family: "LEO", MemoryMiB: 16384, Virtual: []labels.Virtual{{MemoryMiB: 8192}, {MemoryMiB: 4096}}}),
			with("gcu.count", "1", "gcu.model", "T10", "gpu.model", "T10", "gcu.family", "LEO", "gcu.memory", "16384", "vgcu.present", "true", "vgcu.count", "2",
				"vgcu.model", "T10", "vgcu.family", "LEO", "vgcu.machine", "NF5468M5")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, of(t, tt.facts, nil)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Case 29: two models in one node, enumerated in both orders, again and again; then a memory read fails.
func TestCase29TwoModelsInOneNode(t *testing.T) {
	t.Parallel()
	want := map[string]string{"gcu.count": "2", "gcu.S60.count": "1", "gcu.T20.count": "1", "gcu.driverVer": "1.8.7", "gcu.machine": "NF5468M5"}
	before := labels.Set(nil)
	for round := range 10 {
		cards := []labels.Card{s60, t20}
		if round%2 == 1 {
			slices.Reverse(cards)
		}
		got := labels.Of(host(cards...), before, noon.Add(time.Duration(round)*time.Minute), labels.Options{})
		all := short(got.Labels)
		if all["gfd.timestamp"] != stamp || all["gfd.latestLabeledTimestamp"] != stamp {
			t.Errorf("round %d: timestamps %s, %s", round, all["gfd.timestamp"], all["gfd.latestLabeledTimestamp"])
		}
		delete(all, "gfd.timestamp")
		delete(all, "gfd.latestLabeledTimestamp")
		if diff := cmp.Diff(want, all); diff != "" {
			t.Errorf("round %d (-want +got):\n%s", round, diff)
		}
		if fmt.Sprint(got.False) != "[enflame.com/gcu.memory enflame.com/gcu.model enflame.com/gpu.model]" {
			t.Errorf("round %d: false for the node: %v", round, got.False)
		}
		before = got.Labels
	}
	failed := t20
	failed.MemoryMiB, failed.Unread = 0, true
	if diff := cmp.Diff(want, of(t, host(s60, failed), before)); diff != "" {
		t.Errorf("with a failed read (-want +got):\n%s", diff)
	}
	// On a node of one model: nothing was published yet, so the label is left out, and the rest is there.
	failed = s60
	failed.MemoryMiB, failed.Unread = 0, true
	got := of(t, host(s60, failed), nil)
	if _, there := got["gcu.memory"]; there || got["gcu.model"] != "S60" || got["gcu.count"] != "2" {
		t.Errorf("a failed read of one model: %v", got)
	}
}

// What was published stays while it cannot be asked, unless what can be asked contradicts it.
func TestUnreadKeepsWhatWasPublished(t *testing.T) {
	t.Parallel()
	before := labels.Of(host(labels.Card{Model: "S60", MemoryMiB: 49120}, labels.Card{Model: "S60", MemoryMiB: 49120}), nil, noon, labels.Options{}).Labels
	if got := short(before)["gcu.memory"]; got != "48128" {
		t.Fatal(got)
	}
	tests := map[string]struct {
		facts        labels.Facts
		count, value string
	}{
		"nobody answers":                    {host(unread(s60), unread(s60)), "2", "48128"},
		"one answers and agrees":            {host(unread(s60), labels.Card{Model: "S60", MemoryMiB: 49120}), "2", "48128"},
		"one answers and contradicts":       {host(unread(s60), s60), "2", ""},
		"a new card does not answer":        {host(unread(s60), unread(s60), unread(s60)), "3", ""},
		"one tells nothing at all":          {labels.Facts{Cards: []labels.Card{unread(s60)}, Silent: 1}, "2", "48128"},
		"one tells nothing, a false entry":  {labels.Facts{Cards: []labels.Card{unread(s60), unread(s60)}, Silent: 1}, "2", ""},
		"memory that nobody can tell":       {host(labels.Card{Model: "S60"}, labels.Card{Model: "S60"}), "2", ""},
		"the driver's version is not asked": {labels.Facts{Cards: []labels.Card{s60, s60}, Driver: labels.Text{Unread: true}}, "2", "41984"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := of(t, tt.facts, before)
			if got["gcu.memory"] != tt.value || got["gcu.count"] != tt.count {
				t.Errorf("memory %q, count %q: want %q, %q", got["gcu.memory"], got["gcu.count"], tt.value, tt.count)
			}
			if tt.facts.Driver.Unread && got["gcu.driverVer"] != "1.8.7" {
				t.Errorf("driver version %q", got["gcu.driverVer"])
			}
		})
	}
	several := labels.Of(host(s60, t20, t20), nil, noon, labels.Options{}).Labels
	got := of(t, labels.Facts{Cards: []labels.Card{s60, t20}, Silent: 1}, several)
	if got["gcu.count"] != "3" || got["gcu.T20.count"] != "2" || got["gcu.S60.count"] != "1" {
		t.Errorf("counts of models: %v", got)
	}
	parts := t10
	parts.Virtual = []labels.Virtual{{MemoryMiB: 8192}}
	divided := labels.Of(host(parts), nil, noon, labels.Options{}).Labels
	parts.Virtual, parts.VirtualUnread = nil, true
	if got := of(t, host(parts), divided); got["vgcu.count"] != "1" || got["vgcu.memory"] != "8192" {
		t.Errorf("vGCUs: %v", got)
	}
}

func TestTimestamps(t *testing.T) {
	t.Parallel()
	first := labels.Of(host(s60), nil, noon, labels.Options{}).Labels
	const key, latest = "enflame.com/gfd.timestamp", "enflame.com/gfd.latestLabeledTimestamp"
	if first[key] != stamp || first[latest] != stamp {
		t.Fatalf("%v", first)
	}
	if again := labels.Of(host(s60), first, later, labels.Options{}).Labels; !maps.Equal(again, first) {
		t.Errorf("nothing changed: %v", again)
	}
	if other := labels.Of(host(s60, s60), first, later, labels.Options{}).Labels; other[key] != "2024-05-20-07-40-27" || other[latest] != other[key] {
		t.Errorf("another label: %v", other)
	}
	if touched := labels.Of(host(s60), first, later, labels.Options{Touch: true}).Labels; touched[key] != stamp || touched[latest] != "2024-05-20-07-40-27" {
		t.Errorf("asked for: %v", touched)
	}
	if none := labels.Of(host(s60), first, later, labels.Options{NoTimestamp: true}).Labels; none[key] != "" || none[latest] != "" {
		t.Errorf("not wanted: %v", none)
	}
	broken := maps.Clone(first)
	broken[key] = "yesterday"
	if mended := labels.Of(host(s60), broken, later, labels.Options{}).Labels; mended[key] != "2024-05-20-07-40-27" {
		t.Errorf("a timestamp that is none: %v", mended)
	}
	zone := time.FixedZone("CST", 8*3600)
	if got := labels.Of(host(s60), nil, noon.In(zone), labels.Options{}).Labels[key]; got != stamp {
		t.Errorf("in another zone %s", got)
	}
	// The copies of another domain change nothing.
	both := labels.Options{Domains: []string{contract.TKEDomain}}
	mirrored := labels.Of(host(s60), first, later, both).Labels
	if mirrored[key] != stamp || mirrored["tke.cloud.tencent.com/gfd.timestamp"] != stamp {
		t.Errorf("mirrored: %v", mirrored)
	}
}

func TestDomains(t *testing.T) {
	t.Parallel()
	o := labels.Options{Domains: []string{contract.TKEDomain, "enflame.com"}, Present: true}
	got := labels.Of(host(s60, t20), nil, noon, o)
	for key, value := range got.Labels {
		suffix, ours := strings.CutPrefix(key, "enflame.com/")
		if ours && got.Labels["tke.cloud.tencent.com/"+suffix] != value {
			t.Errorf("%s=%s has no copy", key, value)
		}
	}
	if n := len(got.Labels); n%2 != 0 || got.Labels["tke.cloud.tencent.com/gcu.present"] != "true" {
		t.Errorf("%d labels: %v", n, got.Labels)
	}
	if !slices.Contains(got.False, "tke.cloud.tencent.com/gcu.model") {
		t.Errorf("false: %v", got.False)
	}
	names, err := contract.NewNames("acme.com/npu")
	if err != nil {
		t.Fatal(err)
	}
	other := labels.Of(host(s60, t20), nil, noon, labels.Options{Names: names}).Labels
	for _, key := range []string{"acme.com/npu.count", "acme.com/npu.S60.count", "acme.com/gfd.timestamp"} {
		if other[key] == "" {
			t.Errorf("no %s in %v", key, other)
		}
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"NF5468M5": "NF5468M5", "Simulated Server": "Simulated-Server", " T10 ": "T10", "": "", "1.0.1.2": "1.0.1.2", "  ": "",
	} {
		if got := labels.Value(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	pairs := [][2]string{
		{"S60 (48G)", "S60 [48G]"}, {"S60/48", "S60-48"}, {"浪潮", "曙光"}, {"-a", "a"}, {"a.", "a"},
		{strings.Repeat("x", 64), strings.Repeat("x", 65)}, {"!", "?"}, {"S60®", "S60"},
	}
	for _, p := range pairs {
		if a, b := labels.Value(p[0]), labels.Value(p[1]); a == b || a == "" || b == "" {
			t.Errorf("%q and %q become %q and %q", p[0], p[1], a, b)
		}
	}
}

func FuzzValue(f *testing.F) {
	f.Add("NF5468M5", "NF5468M5 ")
	f.Add("a b", "a/b")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := labels.Value(a), labels.Value(b)
		if errs := validation.IsValidLabelValue(x); len(errs) > 0 {
			t.Errorf("%q becomes %q: %v", a, x, errs)
		}
		if x == "" && strings.TrimSpace(a) != "" {
			t.Errorf("%q has no value", a)
		}
		dashed := func(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), " ", "-") }
		if x == y && x != "" && dashed(a) != dashed(b) {
			t.Errorf("%q and %q both become %q", a, b, x)
		}
	})
}

// FuzzOf reads any model, machine and set published before: every key and value is legal, no number is 0.
func FuzzOf(f *testing.F) {
	f.Add("S60", "T20", "NF 5468", int64(42976), "enflame.com/gcu.count", "8", true)
	f.Add(strings.Repeat("m", 200), "x/y", "", int64(0), "enflame.com/gcu.S60.count", "-1", false)
	f.Fuzz(func(t *testing.T, a, b, machine string, mib int64, key, value string, unread bool) {
		facts := labels.Facts{Machine: labels.Text{Value: machine}, Cards: []labels.Card{
			{Model: a, Product: b, MemoryMiB: mib}, {Model: b, Unread: unread, MemoryMiB: mib},
		}}
		before := labels.Set{}
		if len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0 && value != "" && value != "0" {
			before[key] = value
		}
		set := labels.Of(facts, before, noon, labels.Options{}).Labels
		for k, v := range set {
			if errs := append(validation.IsQualifiedName(k), validation.IsValidLabelValue(v)...); len(errs) > 0 {
				t.Errorf("%s=%s: %v", k, v, errs)
			}
			number := strings.HasSuffix(k, ".count") || strings.HasSuffix(k, ".memory")
			if v == "" || number && v == "0" {
				t.Errorf("%s=%q", k, v)
			}
		}
		swapped := facts
		swapped.Cards = []labels.Card{facts.Cards[1], facts.Cards[0]}
		if diff := cmp.Diff(set, labels.Of(swapped, before, noon, labels.Options{}).Labels); diff != "" {
			t.Errorf("in the other order (-first +second):\n%s", diff)
		}
	})
}
