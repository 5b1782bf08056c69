package main

import (
	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/scheduler/explain"
	"github.com/topscloud/topscloud/scheduler/screen"
	"github.com/topscloud/topscloud/scheduler/survey"
)

const whyHelp = `Say why a pod waits, or where it is and what is wrong with it. Of a deploy, rs,
sts, ds or job the pod that has waited longest is explained; when it has none,
why they are refused (quota, admission).

Each node is judged for GCU by the scheduler's own code on the same account, and
for what else can be judged outside a scheduler: selectors and affinity, taints,
CPU, memory, other resources. What cannot be is named, and the scheduler's words
are always quoted.

Changes that would help are proven: made on a copy of the account, the pod fits,
and nothing smaller of the kind does.

Rights needed: get on the pod (for another kind, get on it, list on pods and on
events, for deploy also list on replicasets); list on nodes and on pods in all
namespaces; get on the pod's persistentvolumeclaims and their storageclasses.
With rights in the namespace only, the scheduler's words are shown and what
could not be seen is named.

Exit code: 0 the pod is placed and well, or has succeeded; 3 it waits, or
something is wrong with it; 1 the question could not be answered.`

const whyExamples = `  kubectl gcu why inference-0 -n team
  kubectl gcu why deploy/web
  kubectl gcu why job/train -o json | jq -r '.changes[].text'`

func newWhy(a *app) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:               "why POD | KIND/NAME",
		Short:             "Say why a pod waits, and the smallest change that helps",
		Long:              whyHelp,
		Example:           whyExamples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePods,
		PreRunE:           func(*cobra.Command, []string) error { return o.validate() },
		RunE: func(cmd *cobra.Command, args []string) error {
			names, client, namespace, err := a.reach()
			if err != nil {
				return err
			}
			subject, err := explain.Find(cmd.Context(), client, namespace, args[0])
			if err != nil {
				return err
			}
			seen, err := survey.Read(cmd.Context(), client, names, survey.Scope{Namespace: namespace})
			if err != nil {
				return err
			}
			x := explain.Explain(seen, subject, explain.Options{Now: a.now(), RecordTimeout: a.recordTimeout})
			err = o.write(a, x, func() *screen.Page { return explain.Draw(x, explain.DrawOptions{Now: a.now(), Wide: o.wide()}) })
			if err == nil && !x.Well {
				return errAnswerNo
			}
			return err
		},
	}
	o.flags(cmd.Flags(), "wide", "json", "yaml")
	return cmd
}
