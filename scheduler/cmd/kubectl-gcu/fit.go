package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/config"
	"github.com/topscloud/topscloud/scheduler/fit"
	"github.com/topscloud/topscloud/scheduler/screen"
	"github.com/topscloud/topscloud/scheduler/survey"
)

const fitHelp = `Try a request before you make a pod: on which cards its replicas would go now,
one after the other, and if one does not fit, why and what would help.

Cards are chosen by the scheduler's own chooser on a copy of its account. That a
replica fits is certain as long as nothing else changes; which of several nodes
it goes to also depends on the scheduler's other plugins. CPU and memory of the
host are not looked at, since the request names none.

Rights needed: list on nodes and on pods in all namespaces; with less there is
no answer.

Exit code: 0 all replicas fit; 3 some do not; 1 the question could not be
answered.`

const fitExamples = `  kubectl gcu fit --memory 20
  kubectl gcu fit --memory 40 --cards 2 --same-switch --replicas 4
  kubectl gcu fit --gcu 8 --node-selector enflame.com/gcu.model=S60`

type fitOptions struct {
	output
	memory, slices, gcu  int64
	cards, replicas      int
	sameSwitch, sameNUMA bool
	policy               string
	selector             map[string]string
}

func newFit(a *app) *cobra.Command {
	var o fitOptions
	cmd := &cobra.Command{
		Use:               "fit (--memory N | --slices N | --gcu N)",
		Short:             "Say where a request would go now",
		Long:              fitHelp,
		Example:           fitExamples,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		PreRunE:           func(*cobra.Command, []string) error { return o.validate() },
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(a, cmd) },
	}
	f := cmd.Flags()
	f.Int64Var(&o.memory, "memory", 0, "memory units per replica (1 GiB each unless nodes set another)")
	f.Int64Var(&o.slices, "slices", 0, "slices per replica")
	f.Int64Var(&o.gcu, "gcu", 0, "whole cards per replica")
	f.IntVar(&o.cards, "cards", 0, "spread memory or slices evenly over so many cards")
	f.BoolVar(&o.sameSwitch, "same-switch", false, "only on cards below one PCI switch")
	f.BoolVar(&o.sameNUMA, "same-numa", false, "only on cards of one NUMA node")
	f.StringVar(&o.policy, "policy", "", contract.PolicyBinpack+" or "+contract.PolicySpread)
	f.IntVar(&o.replicas, "replicas", 1, "how many of them, 1 to 1000")
	f.StringToStringVar(&o.selector, "node-selector", nil, "labels that the node must have, key=value")
	cmd.MarkFlagsOneRequired("memory", "slices", "gcu")
	cmd.MarkFlagsMutuallyExclusive("memory", "slices", "gcu")
	cmd.MarkFlagsMutuallyExclusive("same-switch", "same-numa")
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions([]string{contract.PolicyBinpack, contract.PolicySpread}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	o.flags(f, "wide", "json", "yaml")
	return cmd
}

func (o *fitOptions) validate() error {
	if o.replicas < 1 || o.replicas > 1000 {
		return fmt.Errorf("--replicas %d: want 1 to 1000", o.replicas)
	}
	return o.output.validate()
}

func (o *fitOptions) request() fit.Request {
	r := fit.Request{Kind: share.Memory, Amount: o.memory, Cards: o.cards, Policy: o.policy, Replicas: o.replicas, NodeSelector: o.selector}
	switch {
	case o.slices != 0:
		r.Kind, r.Amount = share.Slices, o.slices
	case o.gcu != 0:
		r.Kind, r.Amount = share.Whole, o.gcu
	}
	switch {
	case o.sameSwitch:
		r.Topology = contract.TopologySameSwitch
	case o.sameNUMA:
		r.Topology = contract.TopologySameNUMA
	}
	return r
}

func (o *fitOptions) run(a *app, cmd *cobra.Command) error {
	names, client, namespace, err := a.reach()
	if err != nil {
		return err
	}
	seen, err := survey.Read(cmd.Context(), client, names, survey.Scope{Namespace: namespace})
	if err != nil {
		return err
	}
	if !seen.Complete() {
		return errors.New("what fits cannot be told with your rights: " + strings.Join(seen.Unseen, " "))
	}
	args, err := config.Decode(nil)
	if err != nil {
		return err
	}
	trial, err := fit.Try(seen, seen.Ledger(a.now(), a.recordTimeout), o.request(), args.Weights)
	if err != nil {
		return err
	}
	err = o.write(a, trial, func() *screen.Page { return fit.Draw(trial, o.wide()) })
	if err == nil && len(trial.Placements) < trial.Replicas {
		return errAnswerNo
	}
	return err
}
