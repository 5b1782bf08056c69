package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	version "github.com/topscloud/topscloud/internal/app"
	"github.com/topscloud/topscloud/internal/contract"
	v1 "github.com/topscloud/topscloud/scheduler/config/v1"
)

// app is what the verbs have in common.
type app struct {
	in     io.Reader
	out    io.Writer
	getenv func(string) string
	now    func() time.Time
	// connect returns a client and the namespace that the user works in.
	connect func() (kubernetes.Interface, string, error)

	resource      string
	alias         string
	recordTimeout time.Duration
}

func newRoot(in io.Reader, out io.Writer, getenv func(string) string) *cobra.Command {
	a := &app{in: in, out: out, getenv: getenv, now: time.Now}
	root := a.command()
	a.connect = kubeFlags(root.PersistentFlags())
	return root
}

// command returns the whole command tree, without the flags that say how to reach a cluster.
func (a *app) command() *cobra.Command {
	var defaults v1.GCUFitArgs
	v1.SetDefaults(&defaults)
	root := &cobra.Command{
		Use:           "kubectl-gcu",
		Short:         "Look at a cluster's GCU cards, and look after them",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl gcu"},
		Version:       version.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(a.out)
	root.SetVersionTemplate("kubectl-gcu {{.Version}}\n")
	f := root.PersistentFlags()
	f.StringVar(&a.resource, "resource", defaults.Resource, "the scheduler's resource, from which all names derive")
	f.StringVar(&a.alias, "resource-alias", defaults.ResourceAlias, "the scheduler's resourceAlias: a second name of whole cards")
	f.DurationVar(&a.recordTimeout, "record-timeout", defaults.RecordTimeout.Duration, "the scheduler's recordTimeout")
	root.AddCommand(newMap(a), newWhy(a), newFit(a), newTop(a), newCordon(a), newUncordon(a), newRepair(a))
	return root
}

func (a *app) names() (*contract.Names, error) {
	names, err := contract.NewNames(a.resource)
	if err != nil {
		return nil, fmt.Errorf("--resource: %w", err)
	}
	if names, err = names.WithAlias(a.alias); err != nil {
		return nil, fmt.Errorf("--resource-alias: %w", err)
	}
	return names, nil
}

// reach returns the names, a client and the namespace that the user works in.
func (a *app) reach() (*contract.Names, kubernetes.Interface, string, error) {
	names, err := a.names()
	if err != nil {
		return nil, nil, "", err
	}
	client, namespace, err := a.connect()
	return names, client, namespace, err
}

// kubeFlags adds kubectl's flags for reaching a cluster and returns how to do it once they are read.
func kubeFlags(f *pflag.FlagSet) func() (kubernetes.Interface, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	overrides := &clientcmd.ConfigOverrides{}
	f.StringVar(&rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "path to the kubeconfig file")
	flags := clientcmd.RecommendedConfigOverrideFlags("")
	flags.ClusterOverrideFlags.APIServer.ShortName = "s" // as kubectl has it
	clientcmd.BindOverrideFlags(overrides, f, flags)
	return func() (kubernetes.Interface, string, error) {
		config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
		namespace, _, err := config.Namespace()
		if err != nil {
			return nil, "", err
		}
		rest, err := config.ClientConfig()
		if err != nil {
			return nil, "", err
		}
		rest.UserAgent = "kubectl-gcu/" + version.Version()
		client, err := kubernetes.NewForConfig(rest)
		return client, namespace, err
	}
}
