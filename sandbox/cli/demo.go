package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/topscloud/topscloud/manifests"
	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/sandbox/binaries"
	"github.com/topscloud/topscloud/sandbox/demo"
)

func demoCommand(g *global) *cobra.Command {
	f := &upFlags{}
	keep := false
	dir := ""
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Start a sandbox, submit the example pods, show where they went, stop",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			examples, err := readExamples(dir)
			if err != nil {
				return err
			}
			if keep {
				return keptDemo(cmd, g, f, examples)
			}
			return passingDemo(cmd, g, f, examples)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.machines, "machine", []string{"s60x8:1", "s60x8-2sw:1", "t10x8:1"}, "simulated machine, <preset>[:count], repeatable")
	flags.StringVar(&f.scheduler, "scheduler-binary", "", "gcu-scheduler executable (default: beside this program)")
	flags.StringVar(&f.config, "scheduler-config", "", "KubeSchedulerConfiguration of gcu-scheduler (default: the one of this release)")
	flags.BoolVar(&f.agents, "agents", true, "run the real node agent and feature discovery on each machine")
	flags.BoolVar(&f.exporters, "exporters", true, "run the exporter on each machine with an agent")
	flags.BoolVar(&keep, "keep", false, "leave the sandbox running in the data folder")
	flags.StringVar(&dir, "examples", "", "folder with other examples than those of this release")
	return cmd
}

// passingDemo runs in a sandbox that ends with this process, in a folder that goes with it.
func passingDemo(cmd *cobra.Command, g *global, f *upFlags, examples []manifests.Example) error {
	dir, err := os.MkdirTemp("", "gcu-sandbox-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out := cmd.OutOrStdout()
	start := time.Now()
	options, err := (&global{dataDir: dir, source: g.source}).options(cmd.Context(), f, out)
	if err != nil {
		return err
	}
	sb, err := sandbox.Start(cmd.Context(), options)
	if err != nil {
		return err
	}
	defer sb.Stop()
	if err := runDemo(cmd.Context(), sb.Layout(), examples, f.agents, out); err != nil {
		return err
	}
	if options.Exporters {
		fmt.Fprintln(out, "make demo KEEP=1 leaves all of it running.")
	}
	fmt.Fprintf(out, "every example is where it should be, after %s\n", time.Since(start).Round(time.Second))
	return nil
}

// keptDemo leaves a detached sandbox behind and says how to reach it.
func keptDemo(cmd *cobra.Command, g *global, f *upFlags, examples []manifests.Example) error {
	out := cmd.OutOrStdout()
	if err := detach(cmd, g, f); err != nil {
		return err
	}
	layout := sandbox.Layout{Dir: g.dataDir}
	err := runDemo(cmd.Context(), layout, examples, f.agents, out)
	if cmd.Context().Err() != nil {
		_, down := sandbox.Down(context.WithoutCancel(cmd.Context()), g.dataDir)
		return errors.Join(err, down)
	}
	kubectl := "kubectl"
	if set, e := binaries.Ensure(cmd.Context(), binaries.Options{Source: g.source}); e == nil {
		kubectl = set.Path(binaries.Kubectl)
	}
	fmt.Fprintf(out, "The sandbox keeps running. Reach it with your own kubectl, or with the one built here:\n"+
		"  export KUBECONFIG=%s\n  %s get pods -A -o wide\nStop it:\n  %s down --data-dir %s\n",
		layout.Kubeconfig(), kubectl, os.Args[0], g.dataDir)
	return err
}

func runDemo(ctx context.Context, layout sandbox.Layout, examples []manifests.Example, agents bool, out io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", layout.Kubeconfig())
	if err != nil {
		return err
	}
	state, err := layout.ReadState()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400
	return demo.Run(ctx, demo.Options{Config: config, Examples: examples, Agents: agents, Exporters: state.Exporters(), Out: out})
}

func readExamples(dir string) ([]manifests.Example, error) {
	if dir == "" {
		return manifests.Examples()
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no *.yaml", dir)
	}
	slices.Sort(files)
	var out []manifests.Example
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		out = append(out, manifests.Example{Name: strings.TrimPrefix(f, dir+string(filepath.Separator)), YAML: b})
	}
	return out, nil
}
