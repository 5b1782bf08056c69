package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/scheduler/screen"
	"github.com/topscloud/topscloud/scheduler/survey"
	"github.com/topscloud/topscloud/scheduler/usage"
)

const topHelp = `Add up who has how much of the cards: by namespace, by pod or by node, the most
memory first.

  MIB         card memory promised to the pods
  CARDS       parts of cards summed up: half of two cards is 1.00
  CARD-HOURS  parts of cards times hours since the pod was bound, of pods that
              live now; pods that have ended are not counted

What pods really use of what they were promised is the exporter's business.

Rights needed: list on nodes and on pods in all namespaces. With less, what can
be seen is added up and what is missing is named.

Exit code: 0, or 1 when nothing can be read.`

func newTop(a *app) *cobra.Command {
	var o output
	var by string
	cmd := &cobra.Command{
		Use:               "top",
		Short:             "Add up memory, cards and card-hours by namespace, pod or node",
		Long:              topHelp,
		Example:           "  kubectl gcu top\n  kubectl gcu top --by pod\n  kubectl gcu top -o json | jq '.total'",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		PreRunE: func(*cobra.Command, []string) error {
			switch usage.By(by) {
			case usage.Namespace, usage.Pod, usage.Node:
				return o.validate()
			}
			return fmt.Errorf("--by %q: want namespace, pod or node", by)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			names, client, namespace, err := a.reach()
			if err != nil {
				return err
			}
			seen, err := survey.Read(cmd.Context(), client, names, survey.Scope{Namespace: namespace, HoldersOnly: true})
			if err != nil {
				return err
			}
			if len(seen.Pods) == 0 && len(seen.Nodes) == 0 && len(seen.Unseen) > 0 {
				return errors.New("there is nothing to add up: " + strings.Join(seen.Unseen, " "))
			}
			u := usage.Add(seen, seen.Ledger(a.now(), a.recordTimeout), usage.By(by), a.now())
			return o.write(a, u, func() *screen.Page { return usage.Draw(u, o.wide()) })
		},
	}
	cmd.Flags().StringVar(&by, "by", string(usage.Namespace), "namespace, pod or node")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{"namespace", "pod", "node"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	o.flags(cmd.Flags(), "wide", "json", "yaml")
	return cmd
}
