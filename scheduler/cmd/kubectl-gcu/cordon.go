package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/cordon"
	"github.com/topscloud/topscloud/scheduler/screen"
)

const cordonHelp = `Close cards for new pods. Pods that hold some of a card stay; who they are is
shown. A card is named by its number on the node, as kubectl gcu map shows it,
or by its uuid. Cards of one node are closed all or none.

--until is a span (2h) or a time (2026-03-01T14:00:00Z). The node's agent opens
the card then; where none runs, uncordon it by hand.

Rights needed: get and patch on nodes (ClusterRole gcu-operator); to see who is
on the card also list on pods in all namespaces.

Exit code: 0, also when the card was cordoned already; 1 when nothing was
changed on the node that the message names: it or the card does not exist, its
annotation cannot be read, or the right is missing.`

const uncordonHelp = `Open cards for new pods again. Pods that wait for them are tried at once.

Rights needed: get and patch on nodes (ClusterRole gcu-operator).

Exit code: 0, also when the card was not cordoned; 1 when nothing was changed.`

func newCordon(a *app) *cobra.Command {
	var o output
	var reason, until string
	cmd := &cobra.Command{
		Use:               "cordon NODE/CARD...",
		Short:             "Close cards for new pods",
		Long:              cordonHelp,
		Example:           "  kubectl gcu cordon gcu-node-1/6 --reason 'fan to be replaced'\n  kubectl gcu cordon gcu-node-1/6 gcu-node-1/7 --until 2h",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeCards,
		PreRunE:           func(*cobra.Command, []string) error { return o.validate() },
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseUntil(until, a.now())
			if err != nil {
				return err
			}
			return a.cordons(args, &o, func(client kubernetes.Interface, names *contract.Names, refs []cordon.Ref) ([]cordon.Result, error) {
				return cordon.Close(cmd.Context(), client, names, refs, reason, at)
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others to read")
	cmd.Flags().StringVar(&until, "until", "", "a span such as 2h, or a time such as 2026-03-01T14:00:00Z")
	o.flags(cmd.Flags(), "json", "yaml")
	return cmd
}

func newUncordon(a *app) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:               "uncordon NODE/CARD...",
		Short:             "Open cards for new pods again",
		Long:              uncordonHelp,
		Example:           "  kubectl gcu uncordon gcu-node-1/6",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeCards,
		PreRunE:           func(*cobra.Command, []string) error { return o.validate() },
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.cordons(args, &o, func(client kubernetes.Interface, names *contract.Names, refs []cordon.Ref) ([]cordon.Result, error) {
				return cordon.Open(cmd.Context(), client, names, refs)
			})
		},
	}
	o.flags(cmd.Flags(), "json", "yaml")
	return cmd
}

// cordonList is the answer as data.
type cordonList struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Cards      []cordon.Result `json:"cards"`
}

func (a *app) cordons(args []string, o *output, do func(kubernetes.Interface, *contract.Names, []cordon.Ref) ([]cordon.Result, error)) error {
	var refs []cordon.Ref
	for _, arg := range args {
		ref, err := cordon.ParseRef(arg)
		if err != nil {
			return err
		}
		refs = append(refs, ref)
	}
	names, client, _, err := a.reach()
	if err != nil {
		return err
	}
	results, err := do(client, names, refs)
	if len(results) > 0 { // what was done before a later node was refused
		list := cordonList{cordon.APIVersion, cordon.Kind, results}
		if err := o.write(a, list, func() *screen.Page { return cordon.Draw(results) }); err != nil {
			return err
		}
	}
	return err
}

// parseUntil reads a span or a time, which must be to come. Empty is no time.
func parseUntil(text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if span, errSpan := time.ParseDuration(text); errSpan == nil {
		at, err = now.Add(span), nil
	}
	if err != nil {
		return nil, fmt.Errorf("--until %q: want a span such as 2h or a time such as 2026-03-01T14:00:00Z", text)
	}
	if !at.After(now) {
		return nil, fmt.Errorf("--until %q: that is past", text)
	}
	at = at.UTC().Truncate(time.Second)
	return &at, nil
}
