// Package command is the command line of the node agent: flags, files of the host, signals, its small HTTP
// server.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
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

// settings are the parts of the file that matter to the agent.
type settings struct {
	RegisterResource []string `json:"registerResource"`
}

// readNames returns the names by the host's file; the default ones where there is none.
func readNames(root string) (*contract.Names, error) {
	path := filepath.Join(root, contract.TopsCloudConfigPath)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return contract.Default(), nil
	}
	if err != nil {
		return nil, err
	}
	var s settings
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	names, err := contract.RegisteredNames(s.RegisterResource)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return names, nil
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
	if o.Names, err = readNames(f.hostRoot); err != nil {
		return err
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
	wg.Go(func() { watchNames(ctx, f.hostRoot, o.Names, cancel) })
	err = a.Run(ctx)
	var changed *changedError
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

// changedError ends the agent because every name it uses would be another.
type changedError struct{ from, to string }

func (e *changedError) Error() string {
	return fmt.Sprintf("%s registers %s now, it was %s", contract.TopsCloudConfigPath, e.to, e.from)
}

// watchNames ends the agent when the host's file names another resource. A file that cannot be read keeps it
// running with what it has.
func watchNames(ctx context.Context, root string, names *contract.Names, end context.CancelCauseFunc) {
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch now, err := readNames(root); {
		case err != nil:
			klog.FromContext(ctx).V(2).Info("The names cannot be read", "err", err)
		case now.ResourceWhole != names.ResourceWhole:
			end(&changedError{from: names.ResourceWhole, to: now.ResourceWhole})
			return
		}
	}
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
