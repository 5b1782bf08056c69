package main

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/repair"
	"github.com/topscloud/topscloud/scheduler/repair/source"
	"github.com/topscloud/topscloud/scheduler/screen"
	"github.com/topscloud/topscloud/scheduler/survey"
)

const repairHelp = `Correct the record of a pod: which cards it holds. A record that cannot be used,
or that contradicts the node, keeps the node closed for new pods; kubectl gcu
map and why name the pod.

What the pod holds is put together from, in this order: --set; what can still
be read of the record (cards by uuid, else by number); the only room that the
other holders leave. Amounts are the limits' of the containers. Nothing is
guessed: what is not known is asked for.

The proposal is tried on a copy of the account (no card over its memory, limits
and node agree), shown, written after you confirm, with your own identity and
only if the pod did not change, and told in an event on the pod.

--clear takes an unusable record away instead: the pod then counts as
unrecorded.

Rights needed: ClusterRole gcu-admin (list on nodes and on pods in all
namespaces, get and patch on pods, create on events in events.k8s.io,
write-records on gcurecords.topscloud.dev).

Exit code: 0 written, or nothing to repair; 1 nothing was written.`

const repairExamples = `  kubectl gcu repair inference-0 -n team
  kubectl gcu repair inference-0 -n team --set main=4:8192,5:8192
  kubectl gcu repair inference-0 -n team --clear --yes`

type repairOptions struct {
	output
	set                []string
	clear, yes, dryRun bool
}

func newRepair(a *app) *cobra.Command {
	var o repairOptions
	cmd := &cobra.Command{
		Use:               "repair POD",
		Short:             "Correct the record of a pod",
		Long:              repairHelp,
		Example:           repairExamples,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completePods,
		PreRunE:           func(*cobra.Command, []string) error { return o.validate() },
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(a, cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.set, "set", nil, "cards of a container: container=card[:MiB][,card[:MiB]...]; once per container")
	f.BoolVar(&o.clear, "clear", false, "take an unusable record away")
	f.BoolVar(&o.yes, "yes", false, "write without asking")
	f.BoolVar(&o.dryRun, "dry-run", false, "show only")
	cmd.MarkFlagsMutuallyExclusive("set", "clear")
	o.flags(f, "json", "yaml")
	return cmd
}

func (o *repairOptions) validate() error {
	if o.format != "" && !o.yes && !o.dryRun {
		return fmt.Errorf("--output %s leaves no place for a question: want --yes or --dry-run too", o.format)
	}
	return o.output.validate()
}

func (o *repairOptions) run(a *app, cmd *cobra.Command, name string) error {
	ctx := cmd.Context()
	names, err := a.names()
	if err != nil {
		return err
	}
	given, err := source.Parse(o.set)
	if err != nil {
		return fmt.Errorf("--set %w", err)
	}
	client, namespace, err := a.connect()
	if err != nil {
		return err
	}
	if !o.dryRun {
		if err := repair.May(ctx, client, namespace); err != nil {
			return err
		}
	}
	p, err := o.propose(a, cmd, client, names, namespace, name, given)
	if errors.Is(err, repair.ErrNothingToDo) && o.format == "" {
		fmt.Fprintln(a.out, err)
		return nil
	}
	if err != nil {
		return err
	}
	if o.format == "" {
		if err := o.write(a, p, func() *screen.Page { return repair.Draw(p) }); err != nil {
			return err
		}
		if !o.dryRun && !o.yes && !a.confirm("Write it? [y/N] ") {
			return errors.New("not confirmed, so nothing was written")
		}
	}
	if !o.dryRun {
		warning, err := repair.Write(ctx, client, names, p, a.now())
		if err != nil {
			return err
		}
		if warning != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), "warning:", warning)
		}
	}
	switch {
	case o.format != "":
		return o.write(a, p, nil)
	case o.dryRun:
		fmt.Fprintln(a.out, "Nothing was written (--dry-run).")
	default:
		fmt.Fprintln(a.out, "Written.")
	}
	return nil
}

func (o *repairOptions) propose(a *app, cmd *cobra.Command, client kubernetes.Interface, names *contract.Names, namespace, name string, given source.Given) (*repair.Proposal, error) {
	pod, err := client.CoreV1().Pods(namespace).Get(cmd.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get pod %s in namespace %s: %w", name, namespace, err)
	}
	seen, err := survey.Read(cmd.Context(), client, names, survey.Scope{Namespace: namespace, HoldersOnly: true})
	if err != nil {
		return nil, err
	}
	if !seen.Complete() {
		return nil, errors.New("a record cannot be tried without seeing who else holds the cards: " + strings.Join(seen.Unseen, " "))
	}
	// The survey's reading of the pod is the one that is written over.
	if at := slices.IndexFunc(seen.Pods, func(p *v1.Pod) bool { return p.UID == pod.UID }); at >= 0 {
		pod = seen.Pods[at]
	}
	options := repair.Options{Names: names, Now: a.now(), RecordTimeout: a.recordTimeout}
	if o.clear {
		return repair.Clear(seen, pod, options)
	}
	return repair.Plan(seen, pod, []repair.Source{given, source.Record{}, source.Rest{}}, len(given) > 0, options)
}

// confirm asks a question. No answer is no.
func (a *app) confirm(question string) bool {
	fmt.Fprint(a.out, question)
	line, _ := bufio.NewReader(a.in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}
