package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/utils/clock"

	gcuapp "github.com/topscloud/topscloud/internal/app"
	"github.com/topscloud/topscloud/scheduler/gcufit"
	"github.com/topscloud/topscloud/scheduler/lease"
	"github.com/topscloud/topscloud/scheduler/telemetry"
)

// newCommand is kube-scheduler's command with our plugin registered and the order of plugins checked
// before the first pod is looked at.
func newCommand() *cobra.Command {
	opts := options.NewOptions()
	var inspectAddress string
	cmd := &cobra.Command{
		Use: "gcu-scheduler",
		Long: `gcu-scheduler is kube-scheduler with the plugin GCUFit, which places pods that
ask for GCU cards or parts of them. It takes all flags of kube-scheduler. The
file given by --config must enable GCUFit in its profiles: in multiPoint, and
once more in filter, postFilter and bind, so that it comes before the in-tree
plugins there.`,
		Args: cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			// Feature gates have to be set before anything reads them.
			return opts.ComponentGlobalsRegistry.Set()
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The flag is Kubernetes' own; the answer has both versions.
			if f := cmd.Flags().Lookup("version"); f != nil && f.Value.String() != "false" {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "gcu-scheduler %s (Kubernetes %s)\n", gcuapp.Version(), version.Get().GitVersion)
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return run(ctx, cmd, opts, inspectAddress)
		},
	}
	flags := opts.Flags
	verflag.AddFlags(flags.FlagSet("global"))
	globalflag.AddGlobalFlags(flags.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	flags.FlagSet("gcu").StringVar(&inspectAddress, "inspect-bind-address", "",
		"host:port to serve the older gcushare scheduler's answers on (/gcushare-scheduler/inspect), with the certificate and the authentication of the secure port; empty serves none")
	for _, set := range flags.FlagSets {
		cmd.Flags().AddFlagSet(set)
	}
	columns, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, *flags, columns)
	return cmd
}

func run(ctx context.Context, cmd *cobra.Command, opts *options.Options, inspectAddress string) error {
	gates := opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	if err := logsapi.ValidateAndApply(opts.Logs, gates); err != nil {
		return fmt.Errorf("logging: %w", err)
	}
	cliflag.PrintFlags(cmd.Flags())
	factory := &gcufit.Factory{Lease: lease.NewHold(clock.RealClock{})}
	config, scheduler, err := app.Setup(ctx, opts, app.WithPlugin(gcufit.Name, factory.New))
	if err != nil {
		return err
	}
	if err := checkProfiles(scheduler.Profiles); err != nil {
		return err
	}
	watchLease(config, factory.Lease)
	if inspectAddress != "" {
		if err := serveInspect(ctx, inspectAddress, config, factory); err != nil {
			return err
		}
	}
	opts.ComponentGlobalsRegistry.AddMetrics()
	account := telemetry.New(factory.Ledger)
	if err := legacyregistry.Registerer().Register(account); err != nil {
		return fmt.Errorf("metrics of the nodes: %w", err)
	}
	defer legacyregistry.Registerer().Unregister(account)
	return app.Run(ctx, config, scheduler)
}

// watchLease shows the plugin what becomes of the lease. It comes after Setup, which makes the lock and the
// plugin, and before Run, which begins to use both.
func watchLease(config *schedulerconfig.CompletedConfig, hold *lease.Hold) {
	if e := config.LeaderElection; e != nil {
		e.Lock = hold.Watch(e.Lock, e.RenewDeadline)
	}
}
