package gcumap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// Snapshot is what Read saw of a cluster.
type Snapshot struct {
	Nodes []*v1.Node
	// Pods are those that ask for GCU and have not ended.
	Pods []*v1.Pod
	// Named says that the nodes were asked for by name, so that pods on no node were not looked for.
	Named bool
	// Unseen says what the caller may not read, one sentence each.
	Unseen []string
}

// Scope limits what Read reads.
type Scope struct {
	// Nodes are the names of the nodes wanted; empty means all.
	Nodes []string
	// Namespace is read alone when the pods of all namespaces may not be.
	Namespace string
}

// Read fetches what a map needs. A right that is missing is noted in Unseen; without the right to read
// any nodes or pods there is nothing to show, and Read fails.
func Read(ctx context.Context, client kubernetes.Interface, names *contract.Names, scope Scope) (*Snapshot, error) {
	s := &Snapshot{Named: len(scope.Nodes) > 0}
	scope.Nodes = slices.Compact(slices.Sorted(slices.Values(scope.Nodes)))
	podsSeen, err := s.readPods(ctx, client, names, scope)
	if err != nil {
		return nil, err
	}
	nodesSeen, err := s.readNodes(ctx, client, scope.Nodes)
	if err != nil {
		return nil, err
	}
	if !podsSeen && !nodesSeen {
		return nil, fmt.Errorf("neither nodes nor pods may be read: %s", strings.Join(s.Unseen, " "))
	}
	return s, nil
}

func (s *Snapshot) readPods(ctx context.Context, client kubernetes.Interface, names *contract.Names, scope Scope) (seen bool, err error) {
	places := scope.Nodes
	if len(places) == 0 {
		places = []string{""}
	}
	namespace := metav1.NamespaceAll
	for _, node := range places {
		err := s.listPods(ctx, client, names, namespace, node)
		if apierrors.IsForbidden(err) && namespace == metav1.NamespaceAll && scope.Namespace != "" {
			namespace = scope.Namespace
			s.Unseen = append(s.Unseen, fmt.Sprintf("Pods of namespaces other than %s may not be read.", namespace))
			err = s.listPods(ctx, client, names, namespace, node)
		}
		if apierrors.IsForbidden(err) {
			s.Unseen = []string{"Pods may not be read" + inNamespace(namespace) + "."}
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("list pods: %w", err)
		}
	}
	return true, nil
}

func inNamespace(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return ""
	}
	return fmt.Sprintf(", neither in all namespaces nor in %s", namespace)
}

// listPods adds the pods on a node, or all with an empty node. It filters again what the server has
// filtered: a list from a cache may be coarser.
func (s *Snapshot) listPods(ctx context.Context, client kubernetes.Interface, names *contract.Names, namespace, node string) error {
	selector := fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(v1.PodFailed)))
	if node != "" {
		selector = fields.AndSelectors(selector, fields.OneTermEqualSelector("spec.nodeName", node))
	}
	list := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Pods(namespace).List(ctx, o)
	})
	return list.EachListItem(ctx, metav1.ListOptions{FieldSelector: selector.String()}, func(obj runtime.Object) error {
		pod, ok := obj.(*v1.Pod)
		if ok && share.Asks(names, pod) && (node == "" || pod.Spec.NodeName == node) {
			s.Pods = append(s.Pods, pod.DeepCopy()) // the item is part of its whole page
		}
		return nil
	})
}

func (s *Snapshot) readNodes(ctx context.Context, client kubernetes.Interface, wanted []string) (seen bool, err error) {
	if len(wanted) == 0 {
		list := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.CoreV1().Nodes().List(ctx, o)
		})
		err := list.EachListItem(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
			if node, ok := obj.(*v1.Node); ok {
				s.Nodes = append(s.Nodes, node)
			}
			return nil
		})
		if apierrors.IsForbidden(err) {
			s.Unseen = append(s.Unseen, "Nodes may not be listed: cards and their memory are unknown.")
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("list nodes: %w", err)
		}
		return true, nil
	}
	var errs []error
	for _, name := range wanted {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			s.Nodes = append(s.Nodes, node)
		case apierrors.IsForbidden(err):
			s.Unseen = append(s.Unseen, fmt.Sprintf("Node %s may not be read: its cards and their memory are unknown.", name))
		default:
			errs = append(errs, fmt.Errorf("get node %s: %w", name, err))
		}
	}
	return len(s.Nodes) > 0, errors.Join(errs...)
}
