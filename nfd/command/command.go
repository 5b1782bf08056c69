package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/internal/app"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/nfd/discovery"
	"github.com/topscloud/topscloud/nfd/labels"
	"github.com/topscloud/topscloud/nfd/publish"
	"github.com/topscloud/topscloud/nfd/source"
)

const program = "gcu-feature-discovery"

// New returns the command.
func New(getenv func(string) string) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   program,
		Short: "Labels a node with what its Enflame GCU cards are",
		Long: `gcu-feature-discovery reads the GCU cards of a node and publishes labels of them:
for node-feature-discovery (a features file or a NodeFeature object), or on the
Node itself where there is none.

  gcu-feature-discovery --dry-run
  gcu-feature-discovery --dry-run --device-source=sim --machine=s60x8`,
		Args: cobra.NoArgs, Version: app.Version(), SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), f, cmd.OutOrStdout()) },
	}
	f.add(cmd.Flags(), getenv)
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := fmt.Fprintf(cmd.OutOrStderr(), "Usage:\n  %s\n\nFlags:\n%s", cmd.UseLine(), cmd.Flags().FlagUsagesWrapped(80))
		return err
	})
	return cmd
}

func run(ctx context.Context, f *flags, out io.Writer) error {
	if err := f.validate(); err != nil {
		return err
	}
	var level klog.Level
	if err := level.Set(strconv.Itoa(f.verbosity)); err != nil {
		return fmt.Errorf("-v: %w", err)
	}
	names, err := contract.ReadNames(f.hostRoot)
	if err != nil {
		return err
	}
	cards, err := source.Open(f.sourceOptions())
	if err != nil {
		return err
	}
	defer cards.Close()
	if f.dryRun {
		return dryRun(ctx, cards, f.labelOptions(names), out)
	}
	api, err := connect(f)
	if err != nil {
		return err
	}
	output, err := api.output(ctx, f, names)
	if err != nil {
		return err
	}
	o := discovery.Options{
		Source: cards, Output: output, Node: f.node, Labels: f.labelOptions(names),
		Refresh: f.sleep, RemovalDelay: f.removalDelay, Metrics: discovery.NewMetrics(),
	}
	if api.client != nil {
		o.Client, o.Events = api.client, NewEvents(api.client, f.node)
	}
	d, err := discovery.New(o)
	if err != nil {
		return err
	}
	if f.withdraw {
		return d.Withdraw(ctx)
	}
	api.disown(ctx, f, names, output)
	if f.oneshot {
		return d.Once(ctx)
	}
	klog.FromContext(ctx).Info("Starting", "version", app.Version(), "node", f.node, "cards", cards.String(), "output", output.String(), "resource", names.ResourceWhole)
	return serve(ctx, f, names, d, o.Metrics)
}

func serve(ctx context.Context, f *flags, names *contract.Names, d *discovery.Discovery, m *discovery.Metrics) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	if f.listen != "" {
		if err := serveHTTP(ctx, &wg, f.listen, d, m); err != nil {
			return err
		}
	}
	wg.Go(func() {
		contract.WatchNames(ctx, f.hostRoot, names, cancel, func(err error) {
			klog.FromContext(ctx).V(2).Info("The names cannot be read", "err", err)
		})
	})
	d.Run(ctx)
	var changed *contract.NamesChangedError
	if errors.As(context.Cause(ctx), &changed) {
		klog.FromContext(ctx).Info("Ending, to start anew with other names", "reason", changed.Error())
	}
	return nil
}

// dryRun prints the labels that would be published first.
func dryRun(ctx context.Context, cards *source.Reader, o labels.Options, out io.Writer) error {
	facts, problems, err := cards.Read(ctx)
	if err != nil {
		return fmt.Errorf("the cards cannot be read: %w", err)
	}
	if problems != nil {
		klog.FromContext(ctx).Info("Some cards cannot be read in full", "problems", problems.Error())
	}
	if facts.Count() == 0 {
		klog.FromContext(ctx).Info("There is no card")
	}
	_, err = io.WriteString(out, labels.Of(facts, nil, time.Now(), o).Labels.Text())
	return err
}

var _ discovery.Source = (*source.Reader)(nil)
var _ publish.Output = publish.File{}
