package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/nfd/labels"
)

// NodeFeatures is the resource of NFD's NodeFeature objects.
var NodeFeatures = schema.GroupVersionResource{Group: "nfd.k8s-sigs.io", Version: "v1alpha1", Resource: "nodefeatures"}

// nodeNameLabel is by what NFD knows of which node an object is.
const nodeNameLabel = "nfd.node.kubernetes.io/node-name"

// managedByLabel finds all objects of ours, for whoever removes them by hand.
const managedByLabel = "app.kubernetes.io/managed-by"

// NodeFeature is one NodeFeature object. It is owned by its Node, so it goes with the Node and with nothing
// else.
type NodeFeature struct {
	Client dynamic.Interface
	Nodes  kubernetes.Interface
	Node   string
	// Namespace is where the object is. NFD reads all of them unless it is told otherwise.
	Namespace string
}

var _ Output = (*NodeFeature)(nil)

// Name returns the name of the object.
func (n *NodeFeature) Name() string {
	const prefix = "gcu-features-for-"
	if name := prefix + n.Node; len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(n.Node))
	return prefix + hex.EncodeToString(sum[:])
}

// String names the object.
func (n *NodeFeature) String() string { return fmt.Sprintf("NodeFeature %s/%s", n.Namespace, n.Name()) }

func (n *NodeFeature) objects() dynamic.ResourceInterface {
	return n.Client.Resource(NodeFeatures).Namespace(n.Namespace)
}

// Read returns the labels of the object.
func (n *NodeFeature) Read(ctx context.Context) (labels.Set, error) {
	object, err := n.objects().Get(ctx, n.Name(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	set, _, err := unstructured.NestedStringMap(object.Object, "spec", "labels")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	return set, nil
}

// Publish creates, updates or deletes the object.
func (n *NodeFeature) Publish(ctx context.Context, r labels.Result) (bool, error) {
	if len(r.Labels) == 0 {
		err := n.objects().Delete(ctx, n.Name(), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	}
	if errs := validation.IsValidLabelValue(n.Node); len(errs) > 0 {
		return false, fmt.Errorf("node %s: NFD finds a node by a label with its name, which this one cannot be: %s; use --output=%s or --output=%s",
			n.Node, strings.Join(errs, "; "), NameFile, NameNodeLabels)
	}
	if err := legalSet(r.Labels); err != nil {
		return false, err
	}
	owner, err := n.owner(ctx)
	if err != nil {
		return false, err
	}
	for attempt := 1; ; attempt++ {
		changed, err := n.write(ctx, r.Labels, owner)
		met := apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
		if !met || attempt == attempts {
			return changed, err
		}
	}
}

func (n *NodeFeature) owner(ctx context.Context) (metav1.OwnerReference, error) {
	node, err := n.Nodes.CoreV1().Nodes().Get(ctx, n.Node, metav1.GetOptions{})
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}, nil
}

func (n *NodeFeature) write(ctx context.Context, set labels.Set, owner metav1.OwnerReference) (bool, error) {
	object, err := n.objects().Get(ctx, n.Name(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = n.objects().Create(ctx, n.object(set, owner), metav1.CreateOptions{FieldManager: manager})
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	want := n.object(set, owner)
	marks := object.GetLabels()
	if marks == nil {
		marks = map[string]string{}
	}
	maps.Copy(marks, want.GetLabels())
	same := maps.Equal(marks, object.GetLabels()) && reflect.DeepEqual(object.GetOwnerReferences(), want.GetOwnerReferences())
	is, _, err := unstructured.NestedStringMap(object.Object, "spec", "labels")
	if same && err == nil && maps.Equal(is, set) {
		return false, nil
	}
	object.SetLabels(marks)
	object.SetOwnerReferences(want.GetOwnerReferences())
	object.Object["spec"] = want.Object["spec"]
	_, err = n.objects().Update(ctx, object, metav1.UpdateOptions{FieldManager: manager})
	return err == nil, err
}

func (n *NodeFeature) object(set labels.Set, owner metav1.OwnerReference) *unstructured.Unstructured {
	values := map[string]any{}
	for key, value := range set {
		values[key] = value
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": NodeFeatures.GroupVersion().String(), "kind": "NodeFeature",
		"spec": map[string]any{
			// Earlier releases of NFD require features; these are none that a rule could match.
			"features": map[string]any{"flags": map[string]any{}, "attributes": map[string]any{}, "instances": map[string]any{}},
			"labels":   values,
		},
	}}
	object.SetName(n.Name())
	object.SetNamespace(n.Namespace)
	object.SetLabels(map[string]string{nodeNameLabel: n.Node, managedByLabel: manager})
	object.SetOwnerReferences([]metav1.OwnerReference{owner})
	return object
}
