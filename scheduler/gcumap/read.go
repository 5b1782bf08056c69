package gcumap

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/survey"
)

// Read fetches what a map needs. Without the right to read any nodes or pods there is nothing to show,
// and Read fails.
func Read(ctx context.Context, client kubernetes.Interface, names *contract.Names, scope survey.Scope) (*survey.Survey, error) {
	scope.HoldersOnly = true
	s, err := survey.Read(ctx, client, names, scope)
	if err != nil {
		return nil, err
	}
	if !s.NamespaceSeen && !s.NodesSeen && len(s.Nodes) == 0 {
		return nil, fmt.Errorf("neither nodes nor pods may be read: %s", strings.Join(unseen(s), " "))
	}
	return s, nil
}

// unseen says what a map lacks because it may not be read, one sentence each.
func unseen(s *survey.Survey) []string {
	var out []string
	switch {
	case s.PodsSeen:
	case s.NamespaceSeen:
		out = append(out, fmt.Sprintf("Pods of namespaces other than %s may not be read.", s.Scope.Namespace))
	case s.Scope.Namespace != "":
		out = append(out, fmt.Sprintf("Pods may not be read, neither in all namespaces nor in %s.", s.Scope.Namespace))
	default:
		out = append(out, "Pods may not be read.")
	}
	if !s.NodesSeen && len(s.Scope.Nodes) == 0 {
		out = append(out, "Nodes may not be listed: cards and their memory are unknown.")
	}
	for _, name := range s.Scope.Nodes {
		if !slices.ContainsFunc(s.Nodes, func(n *v1.Node) bool { return n.Name == name }) {
			out = append(out, fmt.Sprintf("Node %s may not be read: its cards and their memory are unknown.", name))
		}
	}
	return out
}
