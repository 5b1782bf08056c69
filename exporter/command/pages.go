package command

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/topscloud/topscloud/exporter/collector"
	"github.com/topscloud/topscloud/internal/app"
)

// handler serves the metrics, whether the exporter works, and a page that says what it is.
func (e *exporter) handler() (http.Handler, error) {
	all, err := e.gatherer(e.groups)
	if err != nil {
		return nil, err
	}
	e.pages.cards = all
	return e.serving(all)
}

// serving is the handler with what a scrape of everything gathers.
func (e *exporter) serving(all prometheus.Gatherer) (http.Handler, error) {
	own := prometheus.NewRegistry()
	if !e.f.noExporterMetrics {
		err := errors.Join(own.Register(collectors.NewGoCollector()), own.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
		if err != nil {
			return nil, err
		}
	}
	whole := promhttp.HandlerFor(collector.Both(all, own), promhttp.HandlerOpts{})
	landing, err := web.NewLandingPage(web.LandingConfig{
		Name: "gcu-exporter", Description: "Metrics of Enflame GCU cards", Version: app.Version(),
		Links: []web.LandingLinks{
			{Address: e.f.path, Text: "Metrics"},
			{Address: "/healthz", Text: "Health", Description: "whether the exporter runs"},
			{Address: "/readyz", Text: "Readiness", Description: "whether the cards were looked at"},
		},
	})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+e.f.path, atMost(e.f.maxRequests, func(w http.ResponseWriter, r *http.Request) {
		some := r.URL.Query()["collect[]"]
		if len(some) == 0 {
			if !e.pages.serve(w, r, own) {
				whole.ServeHTTP(w, r)
			}
			return
		}
		for _, g := range some {
			if !slices.Contains(e.groups, g) {
				http.Error(w, fmt.Sprintf("collect[] %q: want one of %v", g, e.groups), http.StatusBadRequest)
				return
			}
		}
		only, err := e.gatherer(some)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		promhttp.HandlerFor(only, promhttp.HandlerOpts{}).ServeHTTP(w, r)
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !e.pages.ready() {
			http.Error(w, "the cards were not looked at yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /{$}", landing)
	return mux, nil
}

// atMost lets so many requests in at once, all where n is 0, and turns the others away.
func atMost(n int, next http.HandlerFunc) http.Handler {
	if n == 0 {
		return next
	}
	places := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next(w, r)
		default:
			http.Error(w, fmt.Sprintf("%d scrapes at once: want no more (--web.max-requests)", n), http.StatusServiceUnavailable)
		}
	})
}
