package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/exporter/attribution"
	"github.com/topscloud/topscloud/exporter/collector"
	"github.com/topscloud/topscloud/exporter/processes"
	"github.com/topscloud/topscloud/exporter/sampler"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
	"github.com/topscloud/topscloud/internal/app"
	"github.com/topscloud/topscloud/internal/contract"
)

// New returns the command.
func New(getenv func(string) string) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "gcu-exporter",
		Short: "Metrics of Enflame GCU cards for Prometheus",
		Long: `gcu-exporter serves metrics of a node's GCU cards and of the pods that hold them.
Cards are asked in the background: a scrape waits for none of them.`,
		Args: cobra.NoArgs, Version: app.Version(), SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.add(cmd.Flags(), getenv)
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := fmt.Fprintf(cmd.OutOrStderr(), "Usage:\n  %s\n\nFlags:\n%s", cmd.UseLine(), cmd.Flags().FlagUsagesWrapped(80))
		return err
	})
	return cmd
}

// exporter is everything that runs.
type exporter struct {
	f        *flags
	groups   []string
	logger   *slog.Logger
	sampler  *sampler.Sampler
	owners   *attribution.Attributor // nil where nothing is said of pods
	failures *prometheus.CounterVec
	pages    pager
}

func run(ctx context.Context, f *flags, stdout, stderr io.Writer) error {
	pods, err := f.check()
	if err != nil {
		return err
	}
	e := &exporter{f: f}
	if e.groups, err = f.groups(); err != nil {
		return err
	}
	if !pods {
		e.groups = slices.DeleteFunc(e.groups, func(g string) bool { return g == collector.Allocation })
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.log)); err != nil {
		return fmt.Errorf("--log.level %q: want debug, info, warn or error", f.log)
	}
	e.logger = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
	so := source.Options{Source: f.deviceSource, Machine: f.machine, ControlFile: f.controlFile, HostRoot: f.hostRoot}
	if f.deviceSource == source.Sim && !f.once {
		so.Node = f.node
	}
	cards, err := source.Open(so)
	if err != nil {
		return err
	}
	defer cards.Close()
	if e.sampler, err = sampler.New(sampler.Options{
		Source: cards, Interval: f.interval, Deadline: f.deadline, Processes: processes.Open(f.hostRoot),
	}); err != nil {
		return err
	}
	e.failures = collector.NewFailures()
	for _, s := range []string{attribution.AgentFailed, attribution.KubeletFailed} {
		e.failures.WithLabelValues(s)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	if pods {
		lister, err := kubelet.NewPodResources(f.podResources)
		if err != nil {
			return err
		}
		defer lister.Close()
		names, err := contract.ReadNames(f.hostRoot)
		if err != nil {
			return err
		}
		e.owners, err = attribution.New(attribution.Options{
			Books: nodebook.NewClient(f.bookSocket), Kubelet: lister, Domain: names.Domain, MaxAge: f.maxAge, Logger: e.logger,
			Failed: func(what string) { e.failures.WithLabelValues(what).Inc() },
		})
		if err != nil {
			return err
		}
		wg.Go(func() { e.owners.Run(ctx) })
		wg.Go(func() {
			contract.WatchNames(ctx, f.hostRoot, names, cancel, func(err error) {
				e.logger.Debug("The names cannot be read", "err", err)
			})
		})
	}
	wg.Go(func() { e.sampler.Run(ctx) })
	if f.once {
		return e.print(ctx, stdout)
	}
	e.logger.Info("Starting", "version", app.Version(), "node", f.node, "cards", cards.String(), "pods", pods, "collectors", len(e.groups))
	handler, err := e.handler()
	if err != nil {
		return err
	}
	wg.Go(func() { e.pages.run(ctx, e.sampler, e.owners, e.looked) })
	return e.serve(ctx, handler)
}

// gatherer gathers some groups.
func (e *exporter) gatherer(groups []string) (prometheus.Gatherer, error) {
	o := collector.Options{Node: e.f.node, Cards: e.sampler.Latest, Groups: groups, BaseUnits: e.f.baseUnits}
	if e.owners != nil {
		o.Owners = e.owners.Latest
	}
	c, err := collector.New(o)
	if err != nil {
		return nil, err
	}
	if e.owners == nil || !slices.Contains(groups, collector.Allocation) {
		return c, nil
	}
	r := prometheus.NewRegistry()
	return collector.Both(c, r), r.Register(e.failures)
}

// print waits until each card has answered or had its time, and prints what is known then.
func (e *exporter) print(ctx context.Context, out io.Writer) error {
	r, err := e.gatherer(e.groups)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*e.f.deadline)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !e.looked() && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	families, err := r.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(out, family); err != nil {
			return err
		}
	}
	return nil
}

// looked says whether all cards were looked at, and who holds them.
func (e *exporter) looked() bool {
	host := e.sampler.Latest()
	if !host.Known {
		return false
	}
	for i := range host.Cards {
		if host.Cards[i].At.IsZero() {
			return false
		}
	}
	if e.owners == nil {
		return true
	}
	s := e.owners.Latest()
	return !errors.Is(s.Agent, attribution.ErrStarting) && !errors.Is(s.Kubelet, attribution.ErrStarting)
}

func (e *exporter) serve(ctx context.Context, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := web.ListenAndServe(server, &web.FlagConfig{
		WebListenAddresses: &e.f.listen, WebSystemdSocket: &e.f.systemd, WebConfigFile: &e.f.configFile,
	}, e.logger)
	if !errors.Is(err, http.ErrServerClosed) || ctx.Err() == nil {
		return err
	}
	var changed *contract.NamesChangedError
	if errors.As(context.Cause(ctx), &changed) {
		e.logger.Info("Ending, to start anew with other names", "reason", changed.Error())
	}
	return nil
}
