package collector_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/exporter/attribution"
	"github.com/topscloud/topscloud/exporter/collector"
	"github.com/topscloud/topscloud/exporter/processes"
	"github.com/topscloud/topscloud/exporter/sampler"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
)

// busy is a machine in use: shares, a pod of two containers on one card, a pod with two cards, vGCUs, links, errors.
func busy(t *testing.T) (sampler.Host, *attribution.Snapshot) {
	t.Helper()
	h := look(t, "s60x8",
		"process 0 100 4096", "process 0 101 6144", "process 0 102 1024",
		"process 1 110 2048", "process 1 111 1024", "process 1 112 8192",
		"process 2 120 42976", "process 3 120 1024",
		"vgcu 4 2", "port 5 0 6 1", "port 5 1", "port 6 1 5 0", "error-record 5 1 2", "pcie 5 1000 2000 3 4", "rma 5",
	)
	h.ProcessesErr = nil
	pods := map[int]string{100: "uid-a", 101: "uid-b", 110: "uid-two", 111: "uid-two", 112: "uid-elsewhere", 120: "uid-train"}
	for i := range h.Cards {
		c := &h.Cards[i]
		list, _ := c.Sample.Processes.Value()
		for _, p := range list {
			c.Processes = append(c.Processes, processes.Process{PID: p.PID, Name: fmt.Sprint("python", p.PID), PodUID: pods[p.PID], DeviceBytes: p.DeviceBytes})
		}
		c.At, c.Took = time.Unix(1700000000, 5e8), 250*time.Millisecond
		c.Metered, c.Joules = true, 1500.5
	}
	h.Cards[5].Records = []sampler.Count{{Type: 2, Records: 1}}
	share := func(minor int, pod, container string) nodebook.Holding {
		x := holding(minor, h.Cards[minor].Device.UUID, pod)
		x.Container, x.MemoryMiB = container, 5120
		return x
	}
	whole := func(minor int) nodebook.Holding {
		x := share(minor, "train", "main")
		x.Kind, x.Resource, x.MemoryMiB = nodebook.Whole, "enflame.com/gcu", 42976
		return x
	}
	return h, &attribution.Snapshot{Holdings: []nodebook.Holding{
		share(0, "a", "main"), share(0, "b", "main"), share(1, "two", "left"), share(1, "two", "right"), whole(2), whole(3),
	}}
}

func TestBusyMachine(t *testing.T) {
	t.Parallel()
	h, owners := busy(t)
	got := text(t, gatherWith(t, collector.Options{
		Cards: func() sampler.Host { return h }, Owners: func() *attribution.Snapshot { return owners }, BaseUnits: true,
	}))
	path := filepath.Join("testdata", "s60x8-busy.txt")
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
}

// A Collector gathers by itself what a registry gathers of it. The registry is a pedantic one, so that no two series
// are the same and all labels are as described.
func TestGatherIsWhatARegistryGathers(t *testing.T) {
	t.Parallel()
	h, owners := busy(t)
	h.Cards[1].Device.Minor = 0
	h.Cards[6].Device.UUID = h.Cards[5].Device.UUID
	c, err := collector.New(collector.Options{
		Node: "n1", Cards: func() sampler.Host { return h }, Owners: func() *attribution.Snapshot { return owners }, BaseUnits: true,
		Now: func() time.Time { return time.Time{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(c); err != nil {
		t.Fatal(err)
	}
	lines := func(g prometheus.Gatherer) []string {
		out := strings.Split(text(t, g), "\n")
		slices.Sort(out)
		return out
	}
	if diff := cmp.Diff(lines(r), lines(c)); diff != "" {
		t.Errorf("by itself (-registry +itself):\n%s", diff)
	}
}

// What pods use is told of a container only where it alone of its pod holds the card, and of the pod always.
func TestWhatPodsUse(t *testing.T) {
	t.Parallel()
	h, owners := busy(t)
	out := text(t, gather(t, h, owners))
	const mib = 1 << 20
	value := func(want float64, metric string, some ...string) {
		t.Helper()
		got := series(out, metric, some...)
		if len(got) != 1 || !strings.HasSuffix(got[0], fmt.Sprintf("} %v", want)) {
			t.Errorf("%s %v: %v, want one of %v", metric, some, got, want)
		}
	}
	none := func(metric string, some ...string) {
		t.Helper()
		if got := series(out, metric, some...); len(got) != 0 {
			t.Errorf("%s %v: %v, want none", metric, some, got)
		}
	}
	value(4096*mib, "allocation_used_bytes", `pod_name="a"`, `container_name="main"`, `pod_uid="uid-a"`, `kind="memory"`)
	value(0, "share_exceeded", `pod_name="a"`)
	value(6144*mib, "pod_used_bytes", `pod_name="b"`)
	value(1, "share_exceeded", `pod_name="b"`)
	value(1024*mib, "unattributed_memory_bytes", `minor_number="0"`)

	none("allocation_used_bytes", `pod_name="two"`)
	value(3072*mib, "pod_used_bytes", `pod_name="two"`)
	value(0, "share_exceeded", `pod_name="two"`)
	value(8192*mib, "unattributed_memory_bytes", `minor_number="1"`)
	value(2048*mib, "process_memory_bytes", `pid="110"`, `pod_name="two"`, `container_name=""`, `process="python110"`)

	// One pod, two cards: each by itself. A whole card that is full is not exceeded.
	value(42976*mib, "allocation_used_bytes", `pod_name="train"`, `minor_number="2"`, `kind="whole"`)
	value(1024*mib, "allocation_used_bytes", `pod_name="train"`, `minor_number="3"`)
	value(0, "share_exceeded", `pod_name="train"`, `minor_number="2"`)

	value(1024*mib, "process_memory_bytes", `pid="102"`, `pod_name=""`, `pod_uid=""`)
	value(8192*mib, "process_memory_bytes", `pid="112"`, `pod_name=""`, `pod_uid="uid-elsewhere"`)
	value(0, "unattributed_memory_bytes", `minor_number="7"`)
	value(1, "process_mapping_available")
	for pid := 100; pid < 103; pid++ {
		if got := series(out, "process_memory_bytes", fmt.Sprintf(`pid="%d"`, pid)); len(got) != 1 {
			t.Errorf("process %d: %v", pid, got)
		}
	}
}

// Where it is not known who holds what, or whose the processes are, nothing is said of what pods use: no process is
// taken for one that nobody owns.
func TestNothingIsSaidOfWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	derived := []string{"allocation_used_bytes", "pod_used_bytes", "share_exceeded", "unattributed_memory_bytes"}
	for name, tt := range map[string]struct {
		change  func(*sampler.Host, *attribution.Snapshot)
		of      int // cards with unattributed memory
		process int // series of processes
		success map[string]int
	}{
		"all is known": {func(*sampler.Host, *attribution.Snapshot) {}, 8, 8, map[string]int{"processes": 1, "allocation": 1}},
		"no hostPID": {func(h *sampler.Host, _ *attribution.Snapshot) {
			h.ProcessesErr = processes.ErrNotTheHosts
			for i := range h.Cards {
				h.Cards[i].Processes = nil
			}
		}, 0, 0, map[string]int{"processes": 1, "allocation": 1}},
		"the agent is away": {func(_ *sampler.Host, s *attribution.Snapshot) {
			*s = attribution.Snapshot{Agent: attribution.ErrStarting}
		}, 0, 8, map[string]int{"processes": 1, "allocation": 0}},
		"card 0's processes cannot be read": {func(h *sampler.Host, _ *attribution.Snapshot) {
			h.Cards[0].Processes, h.Cards[0].ProcessesErr = nil, eflib.ErrTimeout
		}, 7, 5, map[string]int{"processes": 0, "allocation": 0}},
		"card 0 does not tell processes": {func(h *sampler.Host, _ *attribution.Snapshot) {
			h.Cards[0].Processes, h.Cards[0].Sample.Processes = nil, eflib.Unknown[[]eflib.Process](eflib.ErrNotSupported)
			read(&h.Cards[0])
		}, 7, 5, map[string]int{"processes": 1, "allocation": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, owners := busy(t)
			tt.change(&h, owners)
			out := text(t, gather(t, h, owners))
			if got := series(out, "unattributed_memory_bytes"); len(got) != tt.of {
				t.Errorf("%d cards with unattributed memory, want %d", len(got), tt.of)
			}
			if got := series(out, "process_memory_bytes"); len(got) != tt.process {
				t.Errorf("%d processes, want %d", len(got), tt.process)
			}
			for _, metric := range derived {
				if got := series(out, metric); tt.of == 0 && len(got) != 0 {
					t.Errorf("%v, want none", got)
				}
			}
			for group, want := range tt.success {
				if got := series(out, "scrape_collector_success", `"`+group+`"`, fmt.Sprintf("} %d", want)); len(got) != 1 {
					t.Errorf("success of %s: want %d in\n%v", group, want, series(out, "scrape_collector_success"))
				}
			}
		})
	}
}

// MONIT_PODS=false: nothing at all is said of pods, by processes neither.
func TestWithoutPods(t *testing.T) {
	t.Parallel()
	h, _ := busy(t)
	out := text(t, gatherWith(t, collector.Options{Cards: func() sampler.Host { return h }}))
	for _, word := range []string{"uid-", "allocation", "attribut", "share_exceeded"} {
		if strings.Contains(out, word) {
			t.Errorf("%q is told", word)
		}
	}
	if got := series(out, "process_memory_bytes", `pid="100"`, `pod_uid=""`); len(got) != 1 {
		t.Errorf("processes: %v", series(out, "process_memory_bytes"))
	}
}

// Cards that are called the same do not fail the scrape: all are told, apart from one another, and counted.
func TestCollidingCards(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change                    func(h *sampler.Host)
		cards, info, shares, want int
	}{
		"none":      {func(*sampler.Host) {}, 8, 8, 2, 0},
		"one uuid":  {func(h *sampler.Host) { h.Cards[1].Device.UUID = h.Cards[0].Device.UUID }, 8, 8, 2, 2},
		"no uuid":   {func(h *sampler.Host) { h.Cards[6].Device.UUID, h.Cards[7].Device.UUID = "", "" }, 8, 8, 2, 0},
		"one minor": {func(h *sampler.Host) { h.Cards[1].Device.Minor = 0 }, 8, 8, 2, 2},
		"one minor and uuid": {func(h *sampler.Host) {
			h.Cards[1].Device.Minor, h.Cards[1].Device.UUID = 0, h.Cards[0].Device.UUID
		}, 8, 7, 0, 2},
		"one bus id":          {func(h *sampler.Host) { h.Cards[1].Device.PCIAddress = h.Cards[0].Device.PCIAddress }, 8, 8, 2, 2},
		"the same card twice": {func(h *sampler.Host) { h.Cards[1] = h.Cards[0] }, 7, 7, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, owners := busy(t)
			owners.Holdings = owners.Holdings[:2] // of card 0
			tt.change(&h)
			out := text(t, gather(t, h, owners))
			if got := len(series(out, "usage")); got != tt.cards {
				t.Errorf("%d cards have a usage, want %d", got, tt.cards)
			}
			if got := len(series(out, "info")); got != tt.info {
				t.Errorf("%d cards have an info, want %d", got, tt.info)
			}
			if got := len(series(out, "allocation_bytes")); got != tt.shares {
				t.Errorf("%d shares, want %d", got, tt.shares)
			}
			if got := series(out, "colliding_cards", fmt.Sprintf("} %d", tt.want)); len(got) != 1 {
				t.Errorf("want %d colliding cards: %v", tt.want, series(out, "colliding_cards"))
			}
		})
	}
}

// Success of a group: 0 where a card should have told and did not, or the host is not known; 1 where it cannot.
func TestSuccess(t *testing.T) {
	t.Parallel()
	h := look(t, "s60x8")
	h.Cards[2].Sample.Usage = eflib.Percent(4294967295)
	h.Cards[2].Sample.ECC = eflib.Unknown[eflib.ECC](eflib.ErrTimeout)
	h.Cards[3].Sample.PCIeLink = eflib.Unknown[eflib.Link](eflib.ErrNotSupported)
	read(&h.Cards[2])
	read(&h.Cards[3])
	check := func(h sampler.Host, failed ...string) {
		t.Helper()
		out := text(t, gather(t, h, &attribution.Snapshot{}))
		for _, g := range collector.Groups() {
			want := 1
			for _, f := range failed {
				if f == g || f == "all" {
					want = 0
				}
			}
			if got := series(out, "scrape_collector_success", `"`+g+`"`, fmt.Sprintf("} %d", want)); len(got) != 1 {
				t.Errorf("success of %s: want %d", g, want)
			}
			if got := series(out, "scrape_collector_duration_seconds", `"`+g+`"`); len(got) != 1 {
				t.Errorf("duration of %s: %v", g, got)
			}
		}
	}
	check(h, "usage", "ecc")
	check(sampler.Host{}, "all")
	out := text(t, gather(t, h, &attribution.Snapshot{}, "memory"))
	if got := series(out, "scrape_collector_success"); len(got) != 1 || !strings.Contains(got[0], `"memory"`) {
		t.Errorf("only memory is collected: %v", got)
	}
}

// Texts of a driver that are no UTF-8 do not cost the scrape.
func TestOddTexts(t *testing.T) {
	t.Parallel()
	h, owners := busy(t)
	h.Cards[0].Identity.Slot = "a\xffb"
	h.Cards[0].Processes[0].Name = "\xc3("
	h.Cards[0].Sample.Health = eflib.Known(eflib.Health{State: eflib.Unhealthy, Cause: "\xfe"})
	out := text(t, gather(t, h, owners))
	if got := series(out, "usage", `slot="a?b"`); len(got) != 1 {
		t.Errorf("card 0: %v", got)
	}
}

// All metrics follow the rules of Prometheus' linter, but for names that were there before.
func TestLint(t *testing.T) {
	t.Parallel()
	h, owners := busy(t)
	owners.Others = []attribution.Other{{Namespace: "ml", Pod: "d", Container: "main", Resource: "enflame.com/drs-gcu", Count: 2}}
	families, err := gatherWith(t, collector.Options{
		Cards: func() sampler.Host { return h }, Owners: func() *attribution.Snapshot { return owners }, BaseUnits: true,
	}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	problems, err := promlint.New(strings.NewReader(b.String())).Lint()
	if err != nil {
		t.Fatal(err)
	}
	broken := map[string]bool{}
	for _, p := range problems {
		broken[p.Metric] = true
		if _, kept := collector.KeptNames()[p.Metric]; !kept {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for name := range collector.KeptNames() {
		if !broken[name] {
			t.Errorf("%s is listed as an exception and breaks no rule", name)
		}
	}
}
