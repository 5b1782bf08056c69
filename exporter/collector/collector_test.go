package collector_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/exporter/attribution"
	"github.com/topscloud/topscloud/exporter/collector"
	"github.com/topscloud/topscloud/exporter/processes"
	"github.com/topscloud/topscloud/exporter/sampler"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
)

var update = flag.Bool("update", false, "write the golden files anew")

// look samples a simulated machine once.
func look(t *testing.T, preset string, faults ...string) sampler.Host {
	t.Helper()
	o := source.Options{Source: source.Sim, Machine: preset}
	if len(faults) > 0 {
		o.ControlFile = filepath.Join(t.TempDir(), "faults")
		if err := os.WriteFile(o.ControlFile, []byte(strings.Join(faults, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := source.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	state := <-s.Watch(t.Context())
	h := sampler.Host{Known: true, Err: state.Err, ProcessesErr: processes.ErrNotTheHosts}
	samples, errs := eflib.SampleAll(t.Context(), s, state.Devices, eflib.AllFields, time.Minute)
	for i, d := range state.Devices {
		c := sampler.Card{Device: d, Sample: samples[i], Err: errs[i]}
		c.Identity, _ = samples[i].Identity.Value()
		read(&c)
		h.Cards = append(h.Cards, c)
	}
	return h
}

// read sets what the sampler finds in a look.
func read(c *sampler.Card) { c.Lacking, c.Implausible = c.Sample.Lacking(), c.Sample.Implausible() }

func gather(t *testing.T, h sampler.Host, owners *attribution.Snapshot, groups ...string) *prometheus.Registry {
	t.Helper()
	return gatherWith(t, collector.Options{
		Cards: func() sampler.Host { return h }, Owners: func() *attribution.Snapshot { return owners }, Groups: groups,
	})
}

// gatherWith has a clock that stands still.
func gatherWith(t *testing.T, o collector.Options) *prometheus.Registry {
	t.Helper()
	o.Node, o.Now = "n1", func() time.Time { return time.Time{} }
	c, err := collector.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t *testing.T, r prometheus.Gatherer) string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// series returns the lines of a metric that have all of some texts.
func series(out, metric string, some ...string) []string {
	var lines []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "enflame_gcu_"+metric+"{") && !strings.HasPrefix(line, metric+"{") {
			continue
		}
		if !slices.ContainsFunc(some, func(s string) bool { return !strings.Contains(line, s) }) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func TestPresets(t *testing.T) {
	t.Parallel()
	for _, preset := range sim.Presets() {
		t.Run(preset, func(t *testing.T) {
			t.Parallel()
			got := text(t, gather(t, look(t, preset), &attribution.Snapshot{}))
			path := filepath.Join("testdata", preset+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("metrics (-want +got):\n%s", diff)
			}
		})
	}
}

func holding(minor int, uuid, pod string) nodebook.Holding {
	return nodebook.Holding{
		Minor: minor, UUID: uuid, PodUID: "uid-" + pod, Namespace: "ml", Pod: pod, Container: "main",
		Resource: "enflame.com/gcu-memory", Kind: nodebook.Memory, MemoryMiB: 8192,
	}
}

// Case 43: all cards are there whoever holds them, and a card's series name a pod only where it is the card's only
// holder.
func TestCardsStayWhateverIsHeld(t *testing.T) {
	t.Parallel()
	h := look(t, "s60x8")
	five, two := h.Cards[5].Device.UUID, h.Cards[2].Device.UUID
	for name, tt := range map[string]struct {
		owners *attribution.Snapshot
		named  []string // minors whose series name a pod
		shares int
	}{
		"no pods":            {owners: &attribution.Snapshot{}},
		"one holds card 5":   {owners: &attribution.Snapshot{Holdings: []nodebook.Holding{holding(5, five, "a")}}, named: []string{"5"}, shares: 1},
		"two share card 2":   {owners: &attribution.Snapshot{Holdings: []nodebook.Holding{holding(2, two, "a"), holding(2, two, "b")}}, shares: 2},
		"kubelet is away":    {owners: &attribution.Snapshot{Kubelet: errors.New("away")}},
		"a card of long ago": {owners: &attribution.Snapshot{Holdings: []nodebook.Holding{holding(5, "GCU-gone", "a")}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := text(t, gather(t, h, tt.owners))
			if got := series(out, "usage"); len(got) != 8 {
				t.Errorf("%d cards have a usage, want 8", len(got))
			}
			for minor := range 8 {
				m := fmt.Sprint(minor)
				named := len(series(out, "usage", `minor_number="`+m+`"`, `pod_name="a"`, `pod_namespace="ml"`, `container_name="main"`)) == 1
				if want := slices.Contains(tt.named, m); named != want {
					t.Errorf("card %s: names the pod: %v, want %v", m, named, want)
				}
			}
			if got := series(out, "allocation_bytes", "} 8.589934592e+09"); len(got) != tt.shares {
				t.Errorf("shares %v, want %d", got, tt.shares)
			}
			want := "1"
			if tt.owners.Kubelet != nil {
				want = "0"
			}
			if got := series(out, "attribution_up", `source="kubelet"`, "} "+want); len(got) != 1 {
				t.Errorf("attribution by kubelet: want %s in\n%s", want, out)
			}
		})
	}
}

// Case 46: what a card cannot tell has no series, for that card alone, and what cannot be true is counted.
func TestNothingThatCannotBeTrue(t *testing.T) {
	t.Parallel()
	h := look(t, "s60x8")
	s := &h.Cards[0].Sample
	s.Usage = eflib.Percent(4294967295)
	s.ASICCelsius = eflib.Unknown[float64](eflib.ErrNotSupported)
	s.PowerWatts = eflib.Unknown[float64](eflib.ErrNotSupported)
	s.ECC = eflib.Unknown[eflib.ECC](eflib.ErrNotSupported)
	s.Memory = eflib.MemoryOf(1<<30, 2<<30)
	read(&h.Cards[0])
	out := text(t, gather(t, h, &attribution.Snapshot{}))
	for _, metric := range []string{
		"usage", "temperatures", "power_consumption", "power_usage", "ecc_single_bit_error_total_count", "memory_used_bytes", "memory_usage",
	} {
		if got := series(out, metric, `minor_number="0"`); len(got) != 0 {
			t.Errorf("card 0: %v", got)
		}
		if got := series(out, metric, `minor_number="1"`); len(got) != 1 {
			t.Errorf("card 1: %v, want one %s", got, metric)
		}
	}
	if got := series(out, "implausible_readings", `minor_number="0"`, "} 2"); len(got) != 1 {
		t.Errorf("two readings of card 0 cannot be true; told: %v", series(out, "implausible_readings"))
	}
	for _, name := range []string{"usage", "power_usage", "sip_usage"} {
		if n := strings.Count(out, "# TYPE enflame_gcu_"+name+" "); n != 1 {
			t.Errorf("%s has %d TYPE lines, want 1", name, n)
		}
	}
	if !strings.Contains(out, "# TYPE enflame_gcu_ecc_double_bit_error_total_count counter") {
		t.Error("errors are not a counter")
	}
}

// Case 42: a card that does not answer is there, with health 0 and the cause, under the names it always had.
func TestCardThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	h := look(t, "s60x8")
	before := series(text(t, gather(t, h, &attribution.Snapshot{})), "info", `minor_number="3"`)
	c := &h.Cards[3]
	c.Err, c.Sample = fmt.Errorf("no answer for 17s: %w", eflib.ErrTimeout), eflib.Sample{Minor: 3}
	out := text(t, gather(t, h, &attribution.Snapshot{Holdings: []nodebook.Holding{holding(3, c.Device.UUID, "a")}}))
	if got := series(out, "health", `minor_number="3"`, `healthmsg="does not answer"`, `pod_name="a"`, "} 0"); len(got) != 1 {
		t.Errorf("health of card 3: %v", series(out, "health", `minor_number="3"`))
	}
	if got := series(out, "up", `minor_number="3"`, "} 0"); len(got) != 1 {
		t.Errorf("up of card 3: %v", series(out, "up"))
	}
	if got := series(out, "usage"); len(got) != 7 {
		t.Errorf("%d cards have a usage, want 7", len(got))
	}
	if diff := cmp.Diff(before, series(out, "info", `minor_number="3"`)); diff != "" {
		t.Errorf("info of a card that does not answer (-before +now):\n%s", diff)
	}
}

func TestHostThatIsNotSeen(t *testing.T) {
	t.Parallel()
	out := text(t, gather(t, sampler.Host{Known: true, Err: eflib.ErrDriverNotLoaded}, &attribution.Snapshot{}))
	if got := series(out, "exporter_up", "} 0"); len(got) != 1 || len(series(out, "count")) != 0 {
		t.Errorf("want exporter_up 0 and no count:\n%s", out)
	}
	out = text(t, gather(t, sampler.Host{Known: true}, &attribution.Snapshot{}))
	if got := series(out, "count", "} 0"); len(got) != 1 || len(series(out, "exporter_up", "} 1")) != 1 {
		t.Errorf("a host without cards: want exporter_up 1 and count 0:\n%s", out)
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	out := text(t, gather(t, look(t, "t10x8"), &attribution.Snapshot{}, "memory"))
	if len(series(out, "memory_total_bytes")) == 0 || len(series(out, "usage")) != 0 || len(series(out, "count")) != 0 {
		t.Errorf("want memory alone:\n%s", out)
	}
	_, err := collector.New(collector.Options{
		Node: "n1", Cards: func() sampler.Host { return sampler.Host{} }, Owners: func() *attribution.Snapshot { return nil }, Groups: []string{"memroy"},
	})
	if err == nil || !strings.Contains(err.Error(), "memory") {
		t.Errorf("an unknown group: %v, want the known ones", err)
	}
}

// Unattributed devices of other plugins are told by name.
func TestOthers(t *testing.T) {
	t.Parallel()
	out := text(t, gather(t, look(t, "s60x8"), &attribution.Snapshot{
		Others: []attribution.Other{{Namespace: "ml", Pod: "d", Container: "main", Resource: "enflame.com/drs-gcu", Count: 2}},
	}))
	if got := series(out, "unattributed_devices", `resource="enflame.com/drs-gcu"`, `pod_name="d"`, "} 2"); len(got) != 1 {
		t.Errorf("got %v", series(out, "unattributed_devices"))
	}
}
