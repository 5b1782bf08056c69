package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/exporter/attribution"
	"github.com/topscloud/topscloud/exporter/collector"
	"github.com/topscloud/topscloud/exporter/processes"
	"github.com/topscloud/topscloud/exporter/sampler"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
	"github.com/topscloud/topscloud/topology"
)

const (
	benchCards = 16
	benchPods  = 64
	// answers is how long a made-up card takes for all of its readings: some twenty calls of a millisecond or so.
	answers = 20 * time.Millisecond
)

// fleet is a host of cards that take their time, with its agent, its kubelet and its processes.
type fleet struct {
	devices []eflib.Device
	book    nodebook.Book
	list    []*podresourcesapi.PodResources
	procs   map[int][]eflib.Process
	uids    map[int]string
}

func newFleet() *fleet {
	f := &fleet{procs: map[int][]eflib.Process{}, uids: map[int]string{}, book: nodebook.Book{Version: nodebook.Version}}
	for minor := range benchCards {
		f.devices = append(f.devices, eflib.Device{
			Minor: minor, UUID: fmt.Sprintf("GCU-U5300008%04d", minor), Model: "S60", MemoryMiB: 42976,
			PCIAddress: topology.Address{Bus: uint8(minor + 1)},
		})
	}
	for pod := range benchPods {
		d, name := f.devices[pod%benchCards], fmt.Sprintf("inference-%02d-7c9f6d5b8-x2k4q", pod)
		uid := fmt.Sprintf("1d2c3b4a-5e6f-4a1b-9c8d-7e6f5a4b%04d", pod)
		f.book.Holdings = append(f.book.Holdings, nodebook.Holding{
			Minor: d.Minor, UUID: d.UUID, PodUID: uid, Namespace: "ml", Pod: name, Container: "main",
			Resource: "enflame.com/gcu-memory", Kind: nodebook.Memory, MemoryMiB: 8192,
		})
		f.list = append(f.list, &podresourcesapi.PodResources{Namespace: "ml", Name: name, Containers: []*podresourcesapi.ContainerResources{{
			Name: "main", Devices: []*podresourcesapi.ContainerDevices{{ResourceName: "enflame.com/gcu-memory", DeviceIds: []string{"1", "2"}}},
		}}})
		f.procs[d.Minor] = append(f.procs[d.Minor], eflib.Process{PID: 1000 + pod, DeviceBytes: 4 << 30})
		f.uids[1000+pod] = uid
	}
	nodebook.Sort(f.book.Holdings)
	return f
}

func (f *fleet) Watch(ctx context.Context) <-chan eflib.State {
	out := make(chan eflib.State, 1)
	out <- eflib.State{Devices: f.devices}
	context.AfterFunc(ctx, func() { close(out) })
	return out
}

func (f *fleet) Sample(ctx context.Context, d eflib.Device, _ eflib.Field) (eflib.Sample, error) {
	timer := time.NewTimer(answers)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return eflib.Sample{Minor: d.Minor}, eflib.ContextError(ctx)
	}
	return f.tell(d), nil
}

// tell is a card that tells everything.
func (f *fleet) tell(d eflib.Device) eflib.Sample {
	return eflib.Sample{
		Minor: d.Minor, Time: time.Now(),
		Identity: eflib.Known(eflib.Identity{Name: "Enflame S60", UUID: d.UUID, SerialNumber: d.UUID[4:], Firmware: "33.6.5", Slot: "PCIE3_GPU"}),
		Health:   eflib.Known(eflib.Health{State: eflib.Healthy}), Memory: eflib.MemoryOf(42976<<20, 16<<30),
		PowerWatts: eflib.Watts(118), PowerCap: eflib.Watts(300), ASICCelsius: eflib.Celsius(71), HBMCelsius: eflib.Celsius(66), BoardCelsius: eflib.Celsius(50),
		CoreMHz: eflib.Megahertz(1300), HBMMHz: eflib.Megahertz(1600), Usage: eflib.Percent(80), SIPUsage: eflib.Percent(70),
		ClusterUsage:   eflib.Known([]eflib.Reading[float64]{eflib.Percent(1), eflib.Percent(2), eflib.Percent(3), eflib.Percent(4)}),
		PGUsage:        eflib.Known([]eflib.Reading[float64]{eflib.Percent(1), eflib.Percent(2), eflib.Percent(3), eflib.Percent(4)}),
		PCIeLink:       eflib.PCIeLinkOf(5, 5, 16, 16),
		PCIeThroughput: eflib.ThroughputOf(eflib.Throughput{Transmit: 1000, Receive: 2000}),
		ECC:            eflib.ECCOf(eflib.ECC{Enabled: true, Pending: true}), RMA: eflib.RMAOf(eflib.RMA{}),
		PowerMode: eflib.Known(eflib.PowerActive), Virtualization: eflib.Known(eflib.VirtHost), Processes: eflib.Known(f.procs[d.Minor]),
		Ports:          eflib.Known([]eflib.Port{{Number: 0, Link: eflib.Known(eflib.Link{Generation: 4, MaxGeneration: 4, Width: 16, MaxWidth: 16})}, {Number: 1, Link: eflib.Known(eflib.Link{})}}),
		VirtualDevices: eflib.Known([]eflib.VirtualDevice{}), ErrorRecords: eflib.Known([]eflib.ErrorRecord{{ID: 1, ResetType: 2}}),
	}
}

func (f *fleet) Visible() error { return nil }

func (f *fleet) Look(list []eflib.Process, _ time.Time) ([]processes.Process, error) {
	out := make([]processes.Process, 0, len(list))
	for _, p := range list {
		out = append(out, processes.Process{PID: p.PID, Name: "python3", PodUID: f.uids[p.PID], DeviceBytes: p.DeviceBytes})
	}
	return out, nil
}

// fleetAgent is the agent and the kubelet of a fleet.
type fleetAgent struct{ *fleet }

func (f fleetAgent) Watch(ctx context.Context, got func(*nodebook.Book)) error {
	got(&f.book)
	<-ctx.Done()
	return ctx.Err()
}

func (f fleetAgent) List(context.Context, time.Time) ([]*podresourcesapi.PodResources, error) {
	return f.list, nil
}

// BenchmarkScrape scrapes a host of 16 cards with 64 pods through the program's own handler, and beside it one whose
// scrape asks the cards, as exporters commonly do. Both tell the same series. What is reported of memory is the whole process of the test, which
// is larger than the program by the test and the peer.
func BenchmarkScrape(b *testing.B) {
	f := newFleet()
	s, err := sampler.New(sampler.Options{Source: f, Processes: f})
	if err != nil {
		b.Fatal(err)
	}
	owners, err := attribution.New(attribution.Options{Books: fleetAgent{f}, Kubelet: fleetAgent{f}, Domain: "enflame.com"})
	if err != nil {
		b.Fatal(err)
	}
	e := &exporter{
		f: &flags{node: "node-1", path: "/metrics", maxRequests: 40, baseUnits: true}, groups: collector.Groups(),
		logger: slog.New(slog.DiscardHandler), sampler: s, owners: owners, failures: collector.NewFailures(),
	}
	ours, err := e.handler()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var running []chan struct{}
	for _, run := range []func(context.Context){s.Run, owners.Run, func(ctx context.Context) { e.pages.run(ctx, s, owners, func() bool { return true }) }} {
		done := make(chan struct{})
		running = append(running, done)
		go func() {
			defer close(done)
			run(ctx)
		}()
	}
	defer func() {
		cancel()
		for _, done := range running {
			<-done
		}
	}()
	for !e.looked() {
		if b.Context().Err() != nil {
			b.Fatal("the cards were not looked at")
		}
	}
	inlined := inlinedHandler(b, f, e)
	series := scrapeSeries(b, inlined)
	for scrapeSeries(b, ours) != series { // until the page is of the first look
		if b.Context().Err() != nil {
			b.Fatalf("the exporter does not tell the %d series that the peer tells", series)
		}
	}
	var own, peer []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		own = append(own, scrape(b, ours))
	}
	resident := residentMiB(b)
	// The peer is slow: some are enough to know it.
	for range min(len(own), 200) {
		peer = append(peer, scrape(b, inlined))
	}
	b.ReportMetric(float64(series), "series")
	report(b, "", own)
	report(b, "inlined-", peer)
	b.ReportMetric(resident, "RSS-MiB")
}

// inlinedHandler asks all cards at once in each scrape.
func inlinedHandler(b *testing.B, f *fleet, e *exporter) http.Handler {
	b.Helper()
	ask := func() sampler.Host {
		h := sampler.Host{Known: true}
		samples, errs := eflib.SampleAll(b.Context(), f, f.devices, eflib.AllFields, 5*time.Second)
		before := e.sampler.Latest() // for what is added up
		for i, d := range f.devices {
			c := sampler.Card{Device: d, Sample: samples[i], Err: errs[i], At: samples[i].Time, Lacking: samples[i].Lacking()}
			c.Identity, _ = samples[i].Identity.Value()
			list, _ := samples[i].Processes.Value()
			c.Processes, c.ProcessesErr = f.Look(list, c.At)
			c.Metered, c.Joules, c.Records = before.Cards[i].Metered, before.Cards[i].Joules, before.Cards[i].Records
			h.Cards = append(h.Cards, c)
		}
		return h
	}
	c, err := collector.New(collector.Options{Node: "node-1", Cards: ask, Owners: e.owners.Latest, BaseUnits: true})
	if err != nil {
		b.Fatal(err)
	}
	failures := prometheus.NewRegistry()
	if err := failures.Register(e.failures); err != nil {
		b.Fatal(err)
	}
	one := &exporter{f: e.f, groups: e.groups, logger: e.logger, sampler: e.sampler, owners: e.owners, failures: e.failures}
	handler, err := one.serving(collector.Both(c, failures))
	if err != nil {
		b.Fatal(err)
	}
	return handler
}

// scrape scrapes as Prometheus does and returns how long it took.
func scrape(b *testing.B, h http.Handler) time.Duration {
	b.Helper()
	w := &discard{header: http.Header{}}
	request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	request.Header.Set("Accept-Encoding", "gzip")
	began := time.Now()
	h.ServeHTTP(w, request)
	took := time.Since(began)
	if w.code != 0 && w.code != http.StatusOK || w.bytes == 0 {
		b.Fatalf("status %d, %d bytes", w.code, w.bytes)
	}
	return took
}

type discard struct {
	header      http.Header
	code, bytes int
}

func (d *discard) Header() http.Header  { return d.header }
func (d *discard) WriteHeader(code int) { d.code = code }
func (d *discard) Write(p []byte) (int, error) {
	d.bytes += len(p)
	return io.Discard.Write(p)
}

// scrapeSeries counts the series about cards.
func scrapeSeries(b *testing.B, h http.Handler) int {
	b.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	n := 0
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "enflame_") || strings.HasPrefix(line, "scrape_") {
			n++
		}
	}
	return n
}

func report(b *testing.B, prefix string, list []time.Duration) {
	slices.Sort(list)
	at := func(share float64) float64 { return list[int(share*float64(len(list)-1))].Seconds() * 1000 }
	b.ReportMetric(at(0.5), prefix+"p50-ms")
	b.ReportMetric(at(0.99), prefix+"p99-ms")
}

// residentMiB is the process's memory.
func residentMiB(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip("needs /proc: ", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				b.Fatal(err)
			}
			return float64(kib) / 1024
		}
	}
	b.Fatal("/proc/self/status has no VmRSS")
	return 0
}
