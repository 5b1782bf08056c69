package plugin

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// uidIndex is the index that NodePods adds to its informer.
const uidIndex = "uid"

// NodePods reads the pods of a node from an informer that watches that node's pods, and from the API
// server where the informer is not enough.
type NodePods struct {
	client kubernetes.Interface
	node   string
	store  cache.Indexer
}

var _ Pods = (*NodePods)(nil)

// NewNodePods adds an index to the informer, which must not have been started yet.
func NewNodePods(client kubernetes.Interface, node string, informer cache.SharedIndexInformer) (*NodePods, error) {
	err := informer.AddIndexers(cache.Indexers{uidIndex: func(obj any) ([]string, error) {
		pod, ok := obj.(*v1.Pod)
		if !ok {
			return nil, fmt.Errorf("a %T where pods are watched", obj)
		}
		return []string{string(pod.UID)}, nil
	}})
	if err != nil {
		return nil, fmt.Errorf("index pods by uid: %w", err)
	}
	return &NodePods{client: client, node: node, store: informer.GetIndexer()}, nil
}

// Cached returns the informer's pod of a UID.
func (p *NodePods) Cached(uid types.UID) *v1.Pod {
	found, err := p.store.ByIndex(uidIndex, string(uid))
	if err != nil || len(found) == 0 {
		return nil
	}
	pod, _ := found[0].(*v1.Pod)
	return pod
}

// Read asks for one pod by name, or for the node's pods where only the UID is known. A pod of that name
// with another UID means that the one asked for is gone.
func (p *NodePods) Read(ctx context.Context, uid types.UID, namespace, name string) (*v1.Pod, error) {
	notFound := apierrors.NewNotFound(v1.Resource("pods"), string(uid))
	if name != "" {
		pod, err := p.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err != nil:
			return nil, err
		case uid != "" && pod.UID != uid:
			return nil, notFound
		}
		return pod, nil
	}
	list, err := p.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", p.node).String(),
	})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].UID == uid {
			return &list.Items[i], nil
		}
	}
	return nil, notFound
}
