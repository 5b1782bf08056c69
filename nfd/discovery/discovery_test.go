package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/nfd/discovery"
	"github.com/topscloud/topscloud/nfd/labels"
	"github.com/topscloud/topscloud/nfd/publish"
)

var s60 = labels.Card{Model: "S60", Product: "scorpio", Family: "SCORPIO", MemoryMiB: 42976}

func cards(n int) labels.Facts {
	f := labels.Facts{Driver: labels.Text{Value: "1.8.7"}, Machine: labels.Text{Value: "NF5468M5"}}
	for range n {
		f.Cards = append(f.Cards, s60)
	}
	return f
}

// host is a source that says what it is told to, after a delay.
type host struct {
	mu     sync.Mutex // guards all but events
	facts  labels.Facts
	err    error
	delay  time.Duration
	events chan eflib.State
}

func newHost(f labels.Facts) *host { return &host{facts: f, events: make(chan eflib.State, 1)} }

func (h *host) String() string                           { return "test" }
func (h *host) Watch(context.Context) <-chan eflib.State { return h.events }
func (h *host) set(f labels.Facts, err error, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.facts, h.err, h.delay = f, err, d
}

func (h *host) Read(ctx context.Context) (labels.Facts, error, error) {
	h.mu.Lock()
	f, err, delay := h.facts, h.err, h.delay
	h.mu.Unlock()
	select {
	case <-ctx.Done():
		return labels.Facts{}, nil, ctx.Err()
	case <-time.After(delay):
		return f, nil, err
	}
}

// board is an output that keeps every set it was given.
type board struct {
	mu     sync.Mutex // guards all
	now    labels.Set
	writes []labels.Set
	err    error
}

func (b *board) String() string { return "board" }

func (b *board) Read(context.Context) (labels.Set, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.now), b.err
}

func (b *board) Publish(_ context.Context, r labels.Result) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if maps.Equal(b.now, r.Labels) {
		return false, nil
	}
	b.now = maps.Clone(r.Labels)
	b.writes = append(b.writes, b.now)
	return true, nil
}

func (b *board) get(suffix string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now["enflame.com/"+suffix]
}

func (b *board) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.writes)
}

type events []string

func (e *events) Event(_ context.Context, _, reason, message string) {
	*e = append(*e, reason+": "+message)
}

// start runs a discovery until the test ends or stop is called.
func start(t *testing.T, o discovery.Options) (d *discovery.Discovery, stop func()) {
	t.Helper()
	o.Node = "n1"
	d, err := discovery.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return d, stop
}

func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, b := newHost(cards(8)), &board{}
		d, _ := start(t, discovery.Options{Source: h, Output: b})
		synctest.Wait()
		if b.get("gcu.count") != "8" || d.Ready() != nil {
			t.Fatalf("%v, %v", b.now, d.Ready())
		}
		time.Sleep(time.Hour)
		if b.count() != 1 {
			t.Errorf("%d writes in an hour in which nothing changed", b.count())
		}
		// A change is published with the next look, or at once when the cards tell.
		other := cards(8)
		other.Driver.Value = "1.9.0"
		h.set(other, nil, 0)
		h.events <- eflib.State{}
		synctest.Wait()
		if b.get("gcu.driverVer") != "1.9.0" || b.count() != 2 {
			t.Errorf("after an event %v, %d writes", b.now, b.count())
		}
		h.set(cards(9), nil, 0)
		time.Sleep(time.Minute)
		synctest.Wait()
		if b.get("gcu.count") != "9" {
			t.Errorf("after a minute %v", b.now)
		}
	})
}

// Case 30: the process restarts, also while the driver answers slowly. No label goes away, no write is made.
func TestCase30NothingVanishesOnRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, b := newHost(cards(8)), &board{}
		_, stop := start(t, discovery.Options{Source: h, Output: b})
		synctest.Wait()
		was := maps.Clone(b.now)
		for name, fail := range map[string]func(){
			"a restart":             func() {},
			"a driver that is slow": func() { h.set(cards(8), nil, 20*time.Second) },
			"a driver that hangs":   func() { h.set(labels.Facts{}, eflib.ErrTimeout, 30*time.Second) },
			"no driver":             func() { h.set(labels.Facts{}, eflib.ErrDriverNotLoaded, 0) },
			"a card that is silent": func() { f := cards(7); f.Silent = 1; h.set(f, nil, 0) },
			"cards without memory": func() {
				f := cards(8)
				for i := range f.Cards {
					f.Cards[i].MemoryMiB, f.Cards[i].Unread = 0, true
				}
				h.set(f, nil, 0)
			},
		} {
			stop()
			fail()
			var d *discovery.Discovery
			d, stop = start(t, discovery.Options{Source: h, Output: b})
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if diff := cmp.Diff(was, b.now); diff != "" || b.count() != 1 {
				t.Errorf("%s: %d writes (-was +is):\n%s", name, b.count(), diff)
			}
			failed := strings.Contains(name, "hangs") || name == "no driver"
			if (d.Ready() != nil) != failed {
				t.Errorf("%s: ready: %v", name, d.Ready())
			}
		}
	})
}

// Case 39, the label half: cards blink. What is published stays through the blink, and goes when it lasts.
func TestCase39BlinkChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, b := newHost(cards(8)), &board{}
		start(t, discovery.Options{Source: h, Output: b, RemovalDelay: 30 * time.Second})
		synctest.Wait()
		for _, left := range []int{0, 7} {
			h.set(cards(left), nil, 0)
			h.events <- eflib.State{}
			time.Sleep(5 * time.Second)
			h.set(cards(8), nil, 0)
			h.events <- eflib.State{}
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			if b.count() != 1 {
				t.Fatalf("%d cards for 5 s: %v", left, b.writes)
			}
		}
		h.set(cards(7), nil, 0)
		h.events <- eflib.State{}
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if b.get("gcu.count") != "8" {
			t.Errorf("after 29 s count %s", b.get("gcu.count"))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if b.get("gcu.count") != "7" {
			t.Errorf("after 31 s count %s", b.get("gcu.count"))
		}
		h.set(cards(0), nil, 0)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(b.now) != 0 {
			t.Errorf("without cards %v", b.now)
		}
		h.set(cards(8), nil, 0)
		time.Sleep(time.Minute)
		synctest.Wait()
		if b.get("gcu.count") != "8" {
			t.Errorf("cards are back: %v", b.now)
		}
	})
}

func TestFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, b := newHost(cards(2)), &board{err: errors.New("away")}
		m := discovery.NewMetrics()
		registry := prometheus.NewRegistry()
		if err := m.Register(registry); err != nil {
			t.Fatal(err)
		}
		d, _ := start(t, discovery.Options{Source: h, Output: b, Metrics: m})
		synctest.Wait()
		if err := d.Ready(); err == nil || !strings.Contains(err.Error(), "what was published cannot be read: away") {
			t.Errorf("ready: %v", err)
		}
		b.mu.Lock()
		b.err = nil
		b.mu.Unlock()
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if b.get("gcu.count") != "2" || d.Ready() != nil {
			t.Errorf("%v, %v", b.now, d.Ready())
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			got[strings.TrimPrefix(f.GetName(), "gcu_feature_discovery_")] = f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
		}
		delete(got, "last_success_timestamp_seconds")
		want := map[string]float64{"publishes_total": 1, "publish_errors_total": 1, "read_errors_total": 0, "card_problems_total": 0, "labels": float64(len(b.now))}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
	})
}

func node(set map[string]string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u", ResourceVersion: "1", Labels: set}}
}

func label(t *testing.T, client kubernetes.Interface, key, value string) {
	t.Helper()
	n, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Labels[key] = value
	if _, err := client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// An administrator takes a node over, and gives it back.
func TestOptOut(t *testing.T) {
	t.Parallel()
	const optOut, model = "enflame.com/gcu.deploy.gfd", "enflame.com/gcu.model"
	var told events
	client := fake.NewClientset(node(map[string]string{}))
	direct := &publish.NodeLabels{Client: client, Names: contract.Default(), Node: "n1"}
	b := &board{}
	for _, output := range []publish.Output{direct, b} {
		told = nil
		d, err := discovery.New(discovery.Options{Source: newHost(cards(2)), Output: output, Node: "n1", Client: client, Events: &told})
		if err != nil {
			t.Fatal(err)
		}
		once := func() {
			t.Helper()
			if err := d.Once(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		once()
		label(t, client, optOut, "false")
		for range 3 {
			once()
		}
		if len(told) != 1 || !strings.Contains(told[0], "LabelsHandedOver") {
			t.Errorf("%s: told %q", output, told)
		}
		if was, err := output.Read(t.Context()); len(was) != 0 || err != nil {
			t.Errorf("%s: still published: %v, %v", output, was, err)
		}
		label(t, client, model, "AAAA")
		once()
		n, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil || n.Labels[model] != "AAAA" || output == direct && n.Labels["enflame.com/gcu.count"] != "2" {
			t.Errorf("%s: %v, %v", output, n.Labels, err)
		}
		label(t, client, "enflame.com/gfd.timestamp", "2024-05-20-06-40-27") // of an earlier second, as it may well be
		label(t, client, optOut, "true")
		told = nil
		for range 4 {
			once()
		}
		if len(told) != 1 || !strings.Contains(told[0], "label enflame.com/gcu.model") || !strings.Contains(told[0], "kubectl label node n1 enflame.com/gcu.deploy.gfd=false") {
			t.Errorf("%s: told %q", output, told)
		}
	}
}

func TestNodeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	b := &board{}
	client := fake.NewClientset()
	d, err := discovery.New(discovery.Options{Source: newHost(cards(2)), Output: b, Node: "n1", Client: client})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Once(t.Context()); err == nil || len(b.writes) != 0 {
		t.Errorf("published %v, %v", b.writes, err)
	}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node(map[string]string{}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := d.Once(t.Context()); err != nil || len(b.writes) != 1 {
		t.Errorf("published %v, %v", b.writes, err)
	}
	if err := client.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := d.Once(t.Context()); err != nil || len(b.now) == 0 {
		t.Errorf("the Node is away: %v, %v", b.now, err)
	}
	if err := d.Withdraw(t.Context()); err != nil || len(b.now) != 0 {
		t.Errorf("withdrawn: %v, %v", b.now, err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	h, b := newHost(cards(1)), &board{}
	for name, o := range map[string]discovery.Options{
		"no source":       {Output: b, Node: "n"},
		"no output":       {Source: h, Node: "n"},
		"no node":         {Source: h, Output: b},
		"negative delays": {Source: h, Output: b, Node: "n", RemovalDelay: -1},
	} {
		if d, err := discovery.New(o); err == nil {
			t.Errorf("%s: %v", name, fmt.Sprint(d.Ready()))
		}
		if err := discovery.Run(t.Context(), o); err == nil {
			t.Errorf("%s: ran", name)
		}
	}
}
