package command

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// gathered is a gatherer of one gauge with so many series.
func gathered(name string, series int) prometheus.Gatherer {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "A metric."}, []string{"n"})
	for i := range series {
		vec.WithLabelValues(strings.Repeat("x", i%50) + string(rune('a'+i%26)) + time.Duration(i).String()).Set(float64(i))
	}
	r := prometheus.NewRegistry()
	r.MustRegister(vec)
	return r
}

// A page is served as it is and compressed, with what is added to it by each scrape, however long that is.
func TestPageIsWhatIsGathered(t *testing.T) {
	t.Parallel()
	for name, tail := range map[string]int{"nothing is added": 0, "a little": 3, "more than a block": 4000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &pager{cards: gathered("cards", 500)}
			own := gathered("own", tail)
			for range 2 { // the compressor is used again
				now, err := p.render()
				if err != nil {
					t.Fatal(err)
				}
				p.latest.Store(now)
			}
			want := text(t, p.cards) + text(t, own)
			for encoding, zipped := range map[string]bool{"": false, "gzip": true, "deflate, gzip;q=0.5": true, "gzip;q=0": false, "identity": false} {
				r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
				r.Header.Set("Accept-Encoding", encoding)
				w := httptest.NewRecorder()
				if !p.serve(w, r, own) {
					t.Fatal("the page was not served")
				}
				var body io.Reader = w.Body
				if got := w.Header().Get("Content-Encoding") == "gzip"; got != zipped {
					t.Errorf("Accept-Encoding %q: compressed %v, want %v", encoding, got, zipped)
				} else if got {
					unzip, err := gzip.NewReader(w.Body)
					if err != nil {
						t.Fatal(err)
					}
					body = unzip
				}
				got, err := io.ReadAll(body) // checks length and sum
				if err != nil || string(got) != want {
					t.Errorf("Accept-Encoding %q: %d bytes, %v, want %d", encoding, len(got), err, len(want))
				}
			}
		})
	}
}

func text(t *testing.T, g prometheus.Gatherer) string {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out, err := encode(families)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Without a page, with one that is too old, or where another format is asked for, the scrape gathers by itself.
func TestPageIsNotServed(t *testing.T) {
	t.Parallel()
	own := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return nil, nil })
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	p := &pager{cards: gathered("cards", 1)}
	if p.serve(httptest.NewRecorder(), r, own) {
		t.Error("served, and there is no page")
	}
	now, err := p.render()
	if err != nil {
		t.Fatal(err)
	}
	p.latest.Store(now)
	if !p.serve(httptest.NewRecorder(), r, own) {
		t.Error("a fresh page is not served")
	}
	binary := r.Clone(t.Context())
	binary.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	if p.serve(httptest.NewRecorder(), binary, own) {
		t.Error("text was served to one who wants another format")
	}
	now.made = now.made.Add(-time.Minute)
	if p.serve(httptest.NewRecorder(), r, own) {
		t.Error("served, and the page is a minute old")
	}
}

func TestAtMost(t *testing.T) {
	t.Parallel()
	in, release := make(chan struct{}), make(chan struct{})
	h := atMost(1, func(http.ResponseWriter, *http.Request) {
		in <- struct{}{}
		<-release
	})
	get := func() int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Code
	}
	done := make(chan int)
	go func() { done <- get() }()
	<-in
	if code := get(); code != http.StatusServiceUnavailable {
		t.Errorf("a second scrape at once: %d", code)
	}
	close(release)
	if code := <-done; code != http.StatusOK {
		t.Errorf("the first scrape: %d", code)
	}
}
