// Package apply sends YAML to an API server the way kubectl apply --server-side does: every document
// of every file, in order, with the kinds found by discovery. Namespaced objects without a namespace
// go to "default". Applying the same text again changes nothing.
package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// FieldManager owns the fields that are applied.
const FieldManager = "gcu-sandbox"

// Applier applies to one cluster.
type Applier struct {
	client dynamic.Interface
	mapper meta.ResettableRESTMapper
}

// New returns an applier with the rights of config.
func New(config *rest.Config) (*Applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Applier{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco))}, nil
}

// Decode splits a YAML stream into objects. Empty documents are left out.
func Decode(text []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for n := 1; ; n++ {
		var content map[string]any
		err := dec.Decode(&content)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if len(content) == 0 {
			continue
		}
		obj := &unstructured.Unstructured{Object: content}
		if obj.GetKind() == "" || obj.GetAPIVersion() == "" || obj.GetName() == "" {
			return nil, fmt.Errorf("document %d: no apiVersion, kind or name", n)
		}
		out = append(out, obj)
	}
}

// Apply applies every object of a YAML stream and returns what the server stored.
func (a *Applier) Apply(ctx context.Context, text []byte) ([]*unstructured.Unstructured, error) {
	objects, err := Decode(text)
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(objects))
	for _, obj := range objects {
		stored, err := a.one(ctx, obj)
		if err != nil {
			return out, fmt.Errorf("apply %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
		out = append(out, stored)
	}
	return out, nil
}

func (a *Applier) one(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	gvk := obj.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset() // the kind may be younger than the cache
		mapping, err = a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, err
	}
	var client dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(metav1.NamespaceDefault)
		}
		client = a.client.Resource(mapping.Resource).Namespace(obj.GetNamespace())
	}
	body, err := json.Marshal(obj.Object)
	if err != nil {
		return nil, err
	}
	force := true
	return client.Patch(ctx, obj.GetName(), types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: FieldManager, Force: &force})
}
