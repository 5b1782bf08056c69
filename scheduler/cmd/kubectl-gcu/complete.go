package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// completeTimeout bounds what a shell waits for after a tab.
const completeTimeout = 3 * time.Second

// completePods completes the names of pods in the namespace that ask for GCU.
func (a *app) completePods(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || strings.Contains(start, "/") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, client, namespace, err := a.reach()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{Limit: 500})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for i := range pods.Items {
		if p := &pods.Items[i]; strings.HasPrefix(p.Name, start) && share.Asks(names, p) {
			out = append(out, p.Name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeNodes completes the names of nodes with cards.
func (a *app) completeNodes(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	return a.completeNodesAnd(cmd, start, func(node string, _ *contract.NodeDevices) []string { return []string{node} })
}

// completeCards completes node/card.
func (a *app) completeCards(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	return a.completeNodesAnd(cmd, start, func(node string, d *contract.NodeDevices) []string {
		var out []string
		for _, dev := range d.Devices {
			out = append(out, fmt.Sprintf("%s/%d", node, dev.Minor))
		}
		return out
	})
}

func (a *app) completeNodesAnd(cmd *cobra.Command, start string, words func(string, *contract.NodeDevices) []string) ([]string, cobra.ShellCompDirective) {
	names, client, _, err := a.reach()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeTimeout)
	defer cancel()
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 500})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for i := range nodes.Items {
		d, err := contract.DecodeDevices(nodes.Items[i].Annotations[names.DevicesKey])
		if err != nil {
			continue
		}
		for _, w := range words(nodes.Items[i].Name, d) {
			if strings.HasPrefix(w, start) {
				out = append(out, w)
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
