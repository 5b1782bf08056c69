package survey

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
)

// readPods tries all namespaces, then the scope's alone.
func (s *Survey) readPods(ctx context.Context, client kubernetes.Interface) error {
	places := s.Scope.Nodes
	if len(places) == 0 {
		places = []string{""}
	}
	namespace := metav1.NamespaceAll
	for _, node := range places {
		err := s.listPods(ctx, client, namespace, node)
		if apierrors.IsForbidden(err) && namespace == metav1.NamespaceAll && s.Scope.Namespace != "" {
			namespace = s.Scope.Namespace
			err = s.listPods(ctx, client, namespace, node)
		}
		if apierrors.IsForbidden(err) {
			text := "Pods may not be read (list pods)."
			if namespace != metav1.NamespaceAll {
				text = fmt.Sprintf("Pods may not be read, not even in namespace %s (list pods).", namespace)
			}
			s.Unseen = append(s.Unseen, text)
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.PodsSeen, s.NamespaceSeen = namespace == metav1.NamespaceAll, true
	if !s.PodsSeen {
		s.Unseen = append(s.Unseen, fmt.Sprintf("Pods of namespaces other than %s may not be read (list pods).", namespace))
	}
	return nil
}

// listPods adds the pods on a node, or all with an empty node. It filters again what the server has
// filtered: a list from a cache may be coarser.
func (s *Survey) listPods(ctx context.Context, client kubernetes.Interface, namespace, node string) error {
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
		if !ok || ledger.Ended(pod) || node != "" && pod.Spec.NodeName != node {
			return nil
		}
		if s.Scope.HoldersOnly {
			if !share.Asks(s.Names, pod) {
				return nil
			}
			pod = pod.DeepCopy() // the item would keep its whole page
		}
		s.Pods = append(s.Pods, pod)
		return nil
	})
}

func (s *Survey) listNodes(ctx context.Context, client kubernetes.Interface) error {
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
		s.Unseen = append(s.Unseen, "Nodes may not be read (list nodes): their cards, labels and taints are unknown.")
		return nil
	}
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	s.NodesSeen = true
	return nil
}

// getNodes reads the nodes that the scope names.
func (s *Survey) getNodes(ctx context.Context, client kubernetes.Interface) error {
	var errs []error
	for _, name := range s.Scope.Nodes {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			s.Nodes = append(s.Nodes, node)
		case apierrors.IsForbidden(err):
			s.Unseen = append(s.Unseen, fmt.Sprintf("Node %s may not be read (get nodes): its cards, labels and taints are unknown.", name))
		default:
			errs = append(errs, fmt.Errorf("get node %s: %w", name, err))
		}
	}
	s.NodesSeen = len(s.Nodes) == len(s.Scope.Nodes)
	return errors.Join(errs...)
}
