package docs_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/topscloud/topscloud/deviceplugin/agent"
	"github.com/topscloud/topscloud/exporter/collector"
	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/nfd/discovery"
	"github.com/topscloud/topscloud/scheduler/telemetry"
)

var update = flag.Bool("update", false, "write metrics.md anew")

// TestMetricsAreWritten keeps metrics.md what the programs tell.
func TestMetricsAreWritten(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	fmt.Fprint(&b, metricsIntroduction)
	exporterMetrics(&b)
	fmt.Fprint(&b, "\n## Node agent\n\n`gcu-device-plugin`, port 9401 ([node.md](node.md)).\n\n")
	ownMetrics(t, &b, agent.NewMetrics())
	fmt.Fprint(&b, "\n## Feature discovery\n\n`gcu-feature-discovery`, port 9402 ([gfd.md](manual/gfd.md)).\n\n")
	ownMetrics(t, &b, discovery.NewMetrics())
	fmt.Fprint(&b, metricsOfScheduler)
	ownMetrics(t, &b, single{telemetry.New(func() *ledger.Ledger { return nil })})
	if *update {
		if err := os.WriteFile("metrics.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, "metrics.md") != b.String() {
		t.Error("metrics.md is not what the programs tell: run go test ./docs -run Metrics -update")
	}
}

const metricsIntroduction = `<!-- Written by docs/metrics_test.go; to change it, change the code and run: go test ./docs -run Metrics -update -->

# Metrics

How to install and use the exporter is in its [manual](manual/exporter.md); what is promised of names is in
[contract.md](contract.md#metrics-of-the-exporter).

## How to read them

- What a card does not tell has no series: never -1, never 4294967295, never the value of before.
- A percentage is 0 to 100, a ratio 0 to 1. Used memory is at most the total. Readings that cannot be true are left out
  and counted in ` + "`enflame_gcu_implausible_readings`" + `.
- All values of a card are those of one look in the background; ` + "`enflame_gcu_sample_timestamp_seconds`" + ` says when it began.
- Counters of the exporter (energy, error records, failures) begin with it. Those of the driver (ECC errors, NAKs) begin
  anew when the driver wants; ` + "`rate()` and `increase()`" + ` know how to deal with that.
- **B** stands for the labels of a card: %B.
- **P** stands for its holder: %P;
  they are filled only where one container alone holds the card, and empty else, which to Prometheus is as if they were
  not there.

Units and sources that are not what one may think:

- ` + "`enflame_gcu_pcie_throughput`" + ` is in the driver's unit. The vendor's tool prints MiB/s; the library's unit is not published.
- ` + "`enflame_gcu_interconnect_*`" + ` say how ports are joined and how fast a link is. The library has no function for what goes
  over the interconnect, so there is no throughput of it.
- ` + "`class`" + ` of an error record is the driver's reset type, a number; what the numbers mean is not published. The types 0
  to 4 of the driver's interface are there from the start.
- ` + "`enflame_gcu_energy_joules_total`" + ` is the power of each two looks that follow one another, averaged and multiplied with
  the time between; nothing is credited for a time that is longer than a look counts (the interval and two deadlines).
- vGCUs carry the labels of their card's only holder. The node agent gives out no vGCUs, so it cannot say more.

`

const metricsOfScheduler = `
## Scheduler

` + "`gcu-scheduler`" + ` is kube-scheduler with a plugin and has kube-scheduler's metrics, for example
` + "`scheduler_pending_pods` and `scheduler_plugin_execution_duration_seconds{plugin=\"GCUFit\"}`" + `, at /metrics of port 10259, and what
pods ask for, ` + "`kube_pod_resource_request`" + `, at /metrics/resources. Its own, of the account it decides by:

`

func exporterMetrics(b *strings.Builder) {
	text := b.String()
	b.Reset()
	list := func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
	card, holder := collector.CardLabels(), collector.HolderLabels()
	text = strings.NewReplacer("%B", list(card), "%P", list(holder[len(card):])).Replace(text)
	fmt.Fprint(b, text)
	fmt.Fprint(b, "## Exporter\n\n`gcu-exporter`, port 9400. *collector* is the name for `?collect[]=`, `--collector.<name>` and\n`--no-collector.<name>`; without one a metric is always told. † is told only with `--base-units`. Metrics under\n*as before* have the names, labels and units of the vendor's exporter.\n")
	all := collector.Descriptions()
	for _, part := range []struct {
		title string
		has   func(collector.Description) bool
	}{
		{"As before", func(d collector.Description) bool { return d.Older }},
		{"New", func(d collector.Description) bool { return !d.Older }},
	} {
		fmt.Fprintf(b, "\n### %s\n\n| name | type | unit | labels | collector | |\n|---|---|---|---|---|---|\n", part.title)
		for _, d := range all {
			if !part.has(d) {
				continue
			}
			name := "`" + d.Name + "`"
			if d.BaseUnits {
				name += " †"
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", name, d.Type, d.Unit, short(d.Labels, card, holder), d.Group, d.Help)
		}
	}
	fmt.Fprint(b, "\n### Names that break a rule\n\nPrometheus' linter finds fault with these, and with no other. They stay.\n\n")
	kept := collector.KeptNames()
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		fmt.Fprintf(b, "- `%s`: %s\n", name, kept[name])
	}
}

// short writes the labels that many metrics share as B and P.
func short(labels, card, holder []string) string {
	var out []string
	if len(card) > 0 && len(labels) >= len(card) && slices.Equal(labels[:len(card)], card) {
		out, labels = append(out, "B"), labels[len(card):]
	}
	if pod := holder[len(card):]; len(pod) > 0 && len(labels) >= len(pod) && slices.Equal(labels[:len(pod)], pod) {
		out, labels = append(out, "P"), labels[len(pod):]
	}
	for _, l := range labels {
		out = append(out, "`"+l+"`")
	}
	return strings.Join(out, " ")
}

// caught is a registerer that keeps what is registered.
type caught struct {
	prometheus.Registerer
	list []prometheus.Collector
}

func (c *caught) Register(one prometheus.Collector) error {
	c.list = append(c.list, one)
	return nil
}

var description = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), (?:unit: "[^"]*", )?constLabels: \{\}, variableLabels: \{(.*)\}\}$`)

// ownMetrics lists the metrics that a program registers.
func ownMetrics(t *testing.T, b *strings.Builder, m interface {
	Register(prometheus.Registerer) error
}) {
	t.Helper()
	var c caught
	if err := m.Register(&c); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, one := range c.list {
		for _, text := range described(one) {
			rows = append(rows, row(t, one, text))
		}
	}
	slices.Sort(rows)
	fmt.Fprint(b, "| name | type | labels | |\n|---|---|---|---|\n", strings.Join(rows, ""))
}

// single registers one collector.
type single struct{ prometheus.Collector }

func (s single) Register(r prometheus.Registerer) error { return r.Register(s.Collector) }

// described returns what a collector may tell of.
func described(c prometheus.Collector) []string {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		c.Describe(descs)
	}()
	var out []string
	for d := range descs {
		out = append(out, d.String())
	}
	return out
}

func row(t *testing.T, one prometheus.Collector, text string) string {
	t.Helper()
	parts := description.FindStringSubmatch(text)
	if parts == nil {
		t.Fatalf("%s: want name, help and labels", text)
	}
	name, err := strconv.Unquote(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	help, err := strconv.Unquote(parts[2])
	if err != nil {
		t.Fatal(err)
	}
	labels := short(strings.FieldsFunc(parts[3], func(r rune) bool { return r == ',' }), nil, nil)
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, kindOf(t, one), labels, help)
}

func kindOf(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec, prometheus.Gauge: // a Gauge has all that a Counter has
		return "gauge"
	case *prometheus.HistogramVec, prometheus.Histogram:
		return "histogram"
	case prometheus.Counter:
		return "counter"
	case *telemetry.Collector:
		return "gauge"
	}
	t.Fatalf("%T: a metric of no known type", c)
	return ""
}
