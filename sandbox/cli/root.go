package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/internal/app"
	"github.com/topscloud/topscloud/sandbox/binaries"
)

// global are the flags every command has.
type global struct {
	dataDir string
	source  string
}

// New returns the command tree.
func New() *cobra.Command {
	g := &global{}
	root := &cobra.Command{
		Use:   "gcu-sandbox",
		Short: "A real Kubernetes control plane with simulated GCU nodes on this machine",
		Long: `gcu-sandbox runs etcd, kube-apiserver, kube-controller-manager, the stock kube-scheduler and
gcu-scheduler as processes on loopback, together with simulated GCU nodes. No container engine is
needed. The control plane is built from modules once and kept in the user's cache folder.`,
		Version:       app.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&g.dataDir, "data-dir", defaultDataDir(), "folder that holds the sandbox's data")
	root.PersistentFlags().StringVar(&g.source, "source", "", "root of the source tree, for the first build (default: found from the working directory)")
	root.AddCommand(upCommand(g), downCommand(g), statusCommand(g), logsCommand(g), faultCommand(g), binariesCommand(g), demoCommand(g))
	return root
}

func defaultDataDir() string {
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			home = "."
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "topscloud", "sandbox")
}

func binariesCommand(g *global) *cobra.Command {
	var oldest, node, monitoring bool
	cmd := &cobra.Command{
		Use:   "binaries",
		Short: "Build the control plane into the cache, if it is not there, and print where it is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := binaries.Options{Source: g.source, Log: os.Stderr}
			if monitoring {
				dir, err := binaries.EnsurePrometheus(cmd.Context(), o)
				if err == nil {
					fmt.Fprintln(cmd.OutOrStdout(), dir)
				}
				return err
			}
			ensure := binaries.Ensure
			switch {
			case oldest:
				ensure = binaries.EnsureOldest
			case node:
				ensure = binaries.EnsureNode
			}
			set, err := ensure(cmd.Context(), o)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), filepath.Dir(set.Path(binaries.APIServer)))
			if node {
				fmt.Fprintln(cmd.OutOrStdout(), set.EngineDir())
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&oldest, "oldest", false, "the oldest control plane that gcu-scheduler supports ("+binaries.OldestKubernetesVersion+")")
	cmd.Flags().BoolVar(&node, "node", false, "kubelet and containerd "+binaries.ContainerdVersion+" too, for tests on a real node")
	cmd.Flags().BoolVar(&monitoring, "prometheus", false, "prometheus and promtool "+binaries.PrometheusVersion+" instead, for the tests of rules and dashboards")
	cmd.MarkFlagsMutuallyExclusive("oldest", "node", "prometheus")
	return cmd
}
