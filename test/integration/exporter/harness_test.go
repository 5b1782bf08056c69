package exporter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/topscloud/topscloud/exporter/command"
	"github.com/topscloud/topscloud/test/integration/nodetest"
)

// gib is the MiB of a GiB. A node of nodetest has four cards of 32.
const gib = 1024

// cards is how many cards the machine has, and so how many series a metric of cards has at all times.
const cards = 4

// exporter is the command, with its page on a port of its own.
type exporter struct {
	t       *testing.T
	n       *nodetest.Node
	address string
	// tells are metrics that each card has a series of at all times.
	tells []string
}

// start runs the exporter of a node. Flags that are given come after the others.
func start(t *testing.T, n *nodetest.Node, flags ...string) *exporter {
	t.Helper()
	cmd := command.New(func(string) string { return "" })
	cmd.SetArgs(append([]string{
		"--web.listen-address=127.0.0.1:0", "--node-name=" + n.Name, "--host-root=" + n.HostRoot(),
		"--book-socket=" + n.BookSocket(), "--pod-resources-socket=" + n.Kubelet.PodResourcesSocket(),
		"--sample-interval=100ms", "--attribution-max-age=1s",
	}, flags...))
	log := &listening{address: make(chan string, 1)}
	cmd.SetErr(log)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- cmd.ExecuteContext(ctx) }()
	e := &exporter{t: t, n: n, tells: []string{"health", "usage", "memory_used_bytes"}}
	select {
	case e.address = <-log.address:
	case err := <-ended:
		cancel()
		t.Fatalf("the exporter ended: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the exporter: %v", err)
		}
	})
	n.Until("the exporter is ready: it has a page with all cards", func(ctx context.Context) error {
		answer, err := get(ctx, "http://"+e.address+"/readyz")
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
	return e
}

// sim are the flags of an exporter that sees the made-up machine by the means that the agent has.
func sim(n *nodetest.Node) []string {
	return []string{"--device-source=sim", "--machine=t20x4", "--control-file=" + n.ControlFile()}
}

// listening is a log that is waited for a line with the address.
type listening struct {
	mu      sync.Mutex // guards text
	text    bytes.Buffer
	address chan string
}

var listenLine = regexp.MustCompile(`msg="Listening on" address=(\S+)`)

func (l *listening) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if found := listenLine.FindSubmatch(l.text.Bytes()); found != nil {
		select {
		case l.address <- string(found[1]):
		default: // told already
		}
	}
	return len(p), nil
}

// get asks for a page. The caller closes the answer's body.
func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s", url, answer.Status), answer.Body.Close())
	}
	return answer, nil
}

// page is what a scrape told.
type page map[string]*dto.MetricFamily

// scrape reads the page.
func (e *exporter) scrape(ctx context.Context) (page, error) {
	answer, err := get(ctx, "http://"+e.address+"/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(answer.Body)
}

// until scrapes until a page is right. Every page has all cards, whatever it tells of pods.
func (e *exporter) until(what string, check func(page) error) {
	e.t.Helper()
	e.n.Until(what, func(ctx context.Context) error {
		p, err := e.scrape(ctx)
		if err != nil {
			return err
		}
		for _, name := range e.tells {
			if got := p.series(name, "minor_number"); len(got) != cards {
				e.t.Fatalf("%s: %d cards have %s, want %d: %v", what, len(got), name, cards, got)
			}
		}
		return check(p)
	})
}

// series returns the series of a metric as "<value> <labels…>", sorted; format lists labels, separated by spaces.
func (p page) series(name, format string) []string {
	var out []string
	for _, m := range p["enflame_gcu_"+name].GetMetric() {
		value := m.GetGauge().GetValue()
		if m.Counter != nil {
			value = m.GetCounter().GetValue()
		}
		text := strconv.FormatFloat(value, 'f', -1, 64)
		for _, label := range strings.Fields(format) {
			i := slices.IndexFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == label })
			if i < 0 {
				text += " (no " + label + ")"
				continue
			}
			text += " " + m.GetLabel()[i].GetValue()
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// named are the cards whose own series name a holder, as "minor namespace/pod/container".
func (p page) named(name string) []string {
	var out []string
	for _, m := range p["enflame_gcu_"+name].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["pod_name"]+labels["pod_namespace"]+labels["container_name"] != "" {
			out = append(out, labels["minor_number"]+" "+labels["pod_namespace"]+"/"+labels["pod_name"]+"/"+labels["container_name"])
		}
	}
	slices.Sort(out)
	return out
}

// want is what a page should tell of holders. Names of pods are those of the node's namespace.
type want struct {
	// named are the cards that one container alone holds, as "minor pod/container".
	named []string
	// shares are all holdings, as "minor pod container kind resource MiB".
	shares []string
	// others are devices that no card is known of, as "count resource pod container".
	others []string
}

// holders waits until the page tells these holders and no others.
func (e *exporter) holders(what string, w want) {
	e.t.Helper()
	e.until(what, func(p page) error {
		var got want
		for _, metric := range e.tells {
			got.named = nil
			for _, n := range p.named(metric) {
				got.named = append(got.named, strings.Replace(n, " "+e.n.Namespace+"/", " ", 1))
			}
			if !slices.Equal(got.named, w.named) {
				return fmt.Errorf("%s (-want +got):\n%s", metric, cmp.Diff(w.named, got.named))
			}
		}
		for _, s := range p.series("allocation_bytes", "minor_number pod_name container_name kind resource pod_namespace") {
			bytes, rest, _ := strings.Cut(s, " ")
			n, err := strconv.ParseInt(bytes, 10, 64)
			if err != nil {
				return err
			}
			got.shares = append(got.shares, fmt.Sprintf("%s %d", strings.TrimSuffix(rest, " "+e.n.Namespace), n>>20))
		}
		slices.Sort(got.shares)
		for _, s := range p.series("unattributed_devices", "resource pod_name container_name pod_namespace") {
			got.others = append(got.others, strings.TrimSuffix(s, " "+e.n.Namespace))
		}
		if diff := cmp.Diff(w, got, cmp.AllowUnexported(want{})); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}
