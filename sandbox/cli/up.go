package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/sandbox/binaries"
	"github.com/topscloud/topscloud/sandbox/simnode"
)

// upFlags are the flags of up.
type upFlags struct {
	machines      []string
	scheduler     string
	config        string
	noScheduler   bool
	detach        bool
	supervise     bool
	featureGates  string
	runtimeConfig string
	nodeGrace     time.Duration
	agents        bool
	exporters     bool
	prometheus    bool
	prometheusBin string
}

func upCommand(g *global) *cobra.Command {
	f := &upFlags{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a sandbox, or resume the one in the data folder",
		Example: `  gcu-sandbox up --machine s60x8:2 --machine t10x8
  eval "$(gcu-sandbox up --detach --machine s60x8:2 | tail -n 1)"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.detach {
				return detach(cmd, g, f)
			}
			return up(cmd, g, f)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.machines, "machine", nil, "simulated machine, <preset>[:count], repeatable; default s60x8:2, or what the data folder had")
	flags.StringVar(&f.scheduler, "scheduler-binary", "", "gcu-scheduler executable (default: beside this program)")
	flags.StringVar(&f.config, "scheduler-config", "", "KubeSchedulerConfiguration of gcu-scheduler (default: the one of this release)")
	flags.BoolVar(&f.noScheduler, "no-gcu-scheduler", false, "run without gcu-scheduler, for example to start it in a debugger")
	flags.BoolVar(&f.detach, "detach", false, "return when the sandbox is ready and leave it running")
	flags.StringVar(&f.featureGates, "feature-gates", "", "passed to the API server, the controller manager and the schedulers")
	flags.StringVar(&f.runtimeConfig, "runtime-config", "", "passed to the API server")
	flags.DurationVar(&f.nodeGrace, "node-monitor-grace-period", 0, "how long a silent node counts as ready; 0 is Kubernetes' default")
	flags.BoolVar(&f.agents, "agents", true, "run the real node agent and feature discovery on each machine; without them nodes write what they would, light enough for thousands")
	flags.BoolVar(&f.exporters, "exporters", true, "run the exporter on each machine with an agent, each on a port of its own")
	flags.BoolVar(&f.prometheus, "with-prometheus", false, "run Prometheus, scraping exporters, agents, discovery, the scheduler and the API server, with the shipped rules")
	flags.StringVar(&f.prometheusBin, "prometheus-binary", "", "prometheus executable (default: the cached build of "+binaries.PrometheusVersion+", made if it is not there)")
	flags.BoolVar(&f.supervise, "supervise", false, "")
	_ = flags.MarkHidden("supervise")
	return cmd
}

// up runs a sandbox until the command's context ends.
func up(cmd *cobra.Command, g *global, f *upFlags) error {
	ctx := cmd.Context()
	progress := cmd.OutOrStdout()
	if f.supervise {
		pipe := os.NewFile(readyFD, "ready")
		if pipe == nil {
			return errors.New("--supervise is for the program itself")
		}
		defer pipe.Close()
		progress = io.MultiWriter(progress, ignoreErrors{pipe})
	}
	options, err := g.options(ctx, f, progress)
	if err != nil {
		if f.supervise {
			fmt.Fprintln(progress, "error:", err)
		}
		return err
	}
	sb, err := sandbox.Start(ctx, options)
	if err != nil {
		if f.supervise {
			fmt.Fprintln(progress, "error:", err)
		}
		return err
	}
	defer sb.Stop()
	fmt.Fprintf(progress, "export KUBECONFIG=%s\n", sb.Kubeconfig())
	if f.supervise {
		fmt.Fprintln(progress, readyLine)
	} else {
		fmt.Fprintln(progress, "ready; Ctrl-C stops it")
	}
	exited := sb.Exited()
	for {
		select {
		case <-ctx.Done():
			fmt.Fprintln(cmd.OutOrStdout(), "stopping")
			return nil
		case err := <-exited:
			fmt.Fprintf(cmd.OutOrStdout(), "%v; see gcu-sandbox logs\n", err)
		}
	}
}

// options turns flags into the sandbox's options. Machines not named come from the data folder.
func (g *global) options(ctx context.Context, f *upFlags, log io.Writer) (sandbox.Options, error) {
	o := sandbox.Options{
		DataDir: g.dataDir, ControllerManager: true, StockScheduler: true, Log: log,
		FeatureGates: f.featureGates, RuntimeConfig: f.runtimeConfig, NodeMonitorGracePeriod: f.nodeGrace,
		Agents: f.agents, Exporters: f.agents && f.exporters,
	}
	var err error
	if len(f.machines) > 0 {
		if o.Machines, err = simnode.ParseMachines(f.machines); err != nil {
			return o, err
		}
	} else if o.Machines, err = g.formerMachines(); err != nil {
		return o, err
	}
	if !f.noScheduler {
		if o.GCUScheduler, err = schedulerBinary(f.scheduler); err != nil {
			return o, err
		}
	}
	if f.config != "" {
		if o.GCUSchedulerConfig, err = os.ReadFile(f.config); err != nil {
			return o, err
		}
	}
	build := binaries.Options{Source: g.source, Log: log}
	if o.Binaries, err = binaries.Ensure(ctx, build); err != nil || !f.prometheus {
		return o, err
	}
	if o.Prometheus = f.prometheusBin; o.Prometheus == "" {
		dir, err := binaries.EnsurePrometheus(ctx, build)
		if err != nil {
			return o, err
		}
		o.Prometheus = filepath.Join(dir, binaries.Prometheus)
	}
	return o, nil
}

func (g *global) formerMachines() ([]simnode.Machine, error) {
	state, err := sandbox.Layout{Dir: g.dataDir}.ReadState()
	if errors.Is(err, fs.ErrNotExist) {
		return simnode.ParseMachines([]string{"s60x8:2"})
	}
	if err != nil {
		return nil, err
	}
	return state.ParseMachines()
}

func schedulerBinary(flag string) (string, error) {
	if flag == "" {
		exe, err := os.Executable()
		if err != nil {
			return "", err
		}
		flag = filepath.Join(filepath.Dir(exe), sandbox.GCUScheduler)
	}
	path, err := filepath.Abs(flag)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s is not an executable file: run make build, or name one with --scheduler-binary", path)
	}
	return path, nil
}

// ignoreErrors keeps a reader that went away from stopping the writer.
type ignoreErrors struct{ w io.Writer }

func (i ignoreErrors) Write(b []byte) (int, error) {
	_, _ = i.w.Write(b)
	return len(b), nil
}
