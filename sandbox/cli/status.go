package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/sandbox/simnode"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func downCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the sandbox of the data folder, also what a crash left of it; the data stays",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := sandbox.Down(cmd.Context(), g.dataDir)
			if err != nil {
				return err
			}
			if n == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing was running")
			} else {
				fmt.Fprintln(cmd.OutOrStdout(), "stopped")
			}
			return nil
		},
	}
}

func statusCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the sandbox's processes and where they listen",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := sandbox.Status(g.dataDir)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "%-26s %8s  %-9s %s\n", "COMPONENT", "PID", "STATE", "URL")
			bad := 0
			for _, r := range rows {
				pid := "-"
				if r.PID > 0 {
					pid = strconv.Itoa(r.PID)
				}
				if r.State == "exited" {
					bad++
				}
				url := r.URL
				if url == "" {
					url = "-"
				}
				fmt.Fprintf(out, "%-26s %8s  %-9s %s\n", r.Component, pid, r.State, url)
			}
			if bad > 0 {
				return fmt.Errorf("%d components have exited; see gcu-sandbox logs <component>", bad)
			}
			return nil
		},
	}
}

func faultCommand(g *global) *cobra.Command {
	return &cobra.Command{
		Use:   "fault <node> <fault>[,<fault>...]|clear",
		Short: "Make a simulated node misbehave: stop, restart, reboot, card-fail=<minor>, card-gone=<minor>, card-hang=<minor>",
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", sandbox.Layout{Dir: g.dataDir}.Kubeconfig())
			if err != nil {
				return err
			}
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			fault := args[1]
			if fault == "clear" {
				fault = ""
			}
			return simnode.SetFault(cmd.Context(), client, args[0], fault)
		},
	}
}
