package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/internal/app"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/nfd/publish"
)

// api is the way to the API server; empty where there is none and none is needed.
type api struct {
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

// connect returns the way to the API server. A features file can do without.
func connect(f *flags) (api, error) {
	var config *rest.Config
	var err error
	if f.kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	} else {
		config, err = rest.InClusterConfig()
	}
	if errors.Is(err, rest.ErrNotInCluster) && (f.output == publish.NameFile || f.output == publish.NameAuto) {
		return api{}, nil
	}
	if err != nil {
		return api{}, fmt.Errorf("reach the API server: %w", err)
	}
	config.UserAgent = program + "/" + app.Version()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return api{}, err
	}
	objects, err := dynamic.NewForConfig(config)
	return api{client: client, dynamic: objects}, err
}

// output returns where labels are published.
func (a api) output(ctx context.Context, f *flags, names *contract.Names) (publish.Output, error) {
	which := f.output
	if which == publish.NameAuto {
		var err error
		if which, err = a.choose(ctx, f); err != nil {
			return nil, fmt.Errorf("--output=%s: %w", publish.NameAuto, err)
		}
	}
	switch which {
	case publish.NameNodeFeature:
		return &publish.NodeFeature{Client: a.dynamic, Nodes: a.client, Node: f.node, Namespace: f.namespace}, nil
	case publish.NameNodeLabels:
		return &publish.NodeLabels{Client: a.client, Names: names, Node: f.node}, nil
	}
	return publish.File{Path: f.outputFile}, nil
}

// choose looks for NFD: in the API, then on the host.
func (a api) choose(ctx context.Context, f *flags) (string, error) {
	if a.client != nil {
		list, err := a.client.Discovery().ServerResourcesForGroupVersion(publish.NodeFeatures.GroupVersion().String())
		if err != nil && !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("ask for %s: %w", publish.NodeFeatures.GroupVersion(), err)
		}
		if err == nil {
			for _, r := range list.APIResources {
				if r.Name == publish.NodeFeatures.Resource {
					return publish.NameNodeFeature, nil
				}
			}
		}
	}
	folder := filepath.Dir(f.outputFile)
	if info, err := os.Stat(folder); err == nil && info.IsDir() {
		return publish.NameFile, nil
	}
	if a.client == nil {
		return "", fmt.Errorf("no API server to reach, and no folder %s", folder)
	}
	klog.FromContext(ctx).V(2).Info("There is no NFD", "folder", folder)
	return publish.NameNodeLabels, nil
}

// disown leaves labels that an earlier configuration wrote directly to NFD.
func (a api) disown(ctx context.Context, f *flags, names *contract.Names, output publish.Output) {
	if _, direct := output.(*publish.NodeLabels); direct || a.client == nil {
		return
	}
	had, err := (&publish.NodeLabels{Client: a.client, Names: names, Node: f.node}).Disown(ctx)
	switch {
	case err != nil:
		klog.FromContext(ctx).V(2).Info("Labels written directly by an earlier configuration stay recorded", "node", f.node, "err", err)
	case had:
		klog.FromContext(ctx).Info("Labels written directly before are left to NFD", "node", f.node)
	}
}
