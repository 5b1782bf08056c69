// Package command is the command line of the node agent: flags, files of the host, signals, its small HTTP
// server.
package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/deviceplugin/agent"
	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/internal/app"
	"github.com/topscloud/topscloud/internal/contract"
)

// New returns the command.
func New(getenv func(string) string) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "gcu-device-plugin",
		Short: "The node agent for Enflame GCU cards",
		Long: `gcu-device-plugin serves whole cards and shares of cards to kubelet, tells the API
server what cards the node has and how they are, and gives each container the
cards of its pod's record and no others.`,
		Args: cobra.NoArgs, Version: app.Version(), SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), f) },
	}
	f.add(cmd.Flags(), getenv)
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := fmt.Fprintf(cmd.OutOrStderr(), "Usage:\n  %s\n\nFlags:\n%s", cmd.UseLine(), cmd.Flags().FlagUsagesWrapped(80))
		return err
	})
	return cmd
}

// talkative is the verbosity that SIGUSR1 switches to and back from, so that an administrator can look at a
// running agent without ending it.
const talkative = 4

func switchVerbosity(ctx context.Context, configured int) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	defer signal.Stop(signals)
	now := configured
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
		if now == configured {
			now = talkative
		} else {
			now = configured
		}
		var level klog.Level
		if err := level.Set(strconv.Itoa(now)); err == nil {
			klog.FromContext(ctx).Info("Verbosity changed", "v", now)
		}
	}
}

func run(ctx context.Context, f *flags) error {
	var level klog.Level
	if err := level.Set(strconv.Itoa(f.verbosity)); err != nil {
		return fmt.Errorf("-v: %w", err)
	}
	o, err := f.agentOptions()
	if err != nil {
		return err
	}
	if o.Names, err = contract.ReadNames(f.hostRoot); err != nil {
		return err
	}
	if o.Names, err = o.Names.WithAlias(f.alias); err != nil {
		return fmt.Errorf("--resource-alias: %w", err)
	}
	if o.Client, err = client(f); err != nil {
		return err
	}
	so := source.Options{Source: f.deviceSource, Machine: f.machine, ControlFile: f.controlFile, HostRoot: f.hostRoot, Interval: f.healthInterval}
	if f.deviceSource == source.Sim {
		so.Node = f.node
	}
	cards, err := source.Open(so)
	if err != nil {
		return err
	}
	defer cards.Close()
	o.Source, o.Metrics = cards, agent.NewMetrics()
	a, err := agent.New(o)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "version", app.Version(), "node", f.node, "cards", cards.String(), "resource", o.Names.ResourceWhole)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	if f.listen != "" {
		if err := serveHTTP(ctx, &wg, f.listen, a, o.Metrics); err != nil {
			return err
		}
	}
	wg.Go(func() { switchVerbosity(ctx, f.verbosity) })
	wg.Go(func() {
		contract.WatchNames(ctx, f.hostRoot, o.Names, cancel, func(err error) {
			klog.FromContext(ctx).V(2).Info("The names cannot be read", "err", err)
		})
	})
	err = a.Run(ctx)
	var changed *contract.NamesChangedError
	if errors.As(context.Cause(ctx), &changed) {
		klog.FromContext(ctx).Info("Ending, to start anew with other names", "reason", changed.Error())
	}
	cancel(nil)
	return err
}

func client(f *flags) (kubernetes.Interface, error) {
	var config *rest.Config
	var err error
	if f.kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	} else {
		config, err = rest.InClusterConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	config.UserAgent = "gcu-device-plugin/" + app.Version()
	config.QPS, config.Burst = f.kubeQPS, int(2*f.kubeQPS)
	return kubernetes.NewForConfig(config)
}

// serveHTTP serves metrics, health and the node's book.
func serveHTTP(ctx context.Context, wg *sync.WaitGroup, address string, a *agent.Agent, m *agent.Metrics) error {
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	if err := m.Register(registry); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	wg.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "HTTP is not served any more")
		}
	})
	wg.Go(func() {
		<-ctx.Done()
		_ = server.Close()
	})
	return nil
}
