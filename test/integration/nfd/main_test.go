// Package nfd_test runs feature discovery against a real API server, with the rights and policies it ships with
// and the CRDs of nfd.yaml. Each test has a node of its own.
package nfd_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/manifests"
	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/sandbox/simnode"
	"github.com/topscloud/topscloud/test/integration/controlplane"
)

// cluster is the API server that all tests share; admin may do everything there.
var (
	cluster *sandbox.Sandbox
	admin   kubernetes.Interface
	objects dynamic.Interface
	names   = contract.Default()
)

// patience bounds every wait; nothing here takes a tenth of it on an idle machine.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	controlplane.Main(m, sandbox.Options{}, prepare)
}

func prepare(ctx context.Context, p *controlplane.Plane) error {
	cluster, admin = p.Sandbox, p.Admin
	var err error
	if objects, err = dynamic.NewForConfig(p.Config); err != nil {
		return err
	}
	text, err := manifests.DiscoveryRBAC()
	if err != nil {
		return err
	}
	return apply(ctx, text, func(*unstructured.Unstructured) bool { return true })
}

// apply creates the chosen documents of a file; those that are there stay.
func apply(ctx context.Context, text []byte, chosen func(*unstructured.Unstructured) bool) error {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(admin.Discovery()))
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			return err
		}
		if !chosen(o) {
			continue
		}
		kind := o.GroupVersionKind()
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				mapper.Reset() // a CRD that was created just now
				return false, nil
			}
			// Every field has to be known.
			_, err = objects.Resource(mapping.Resource).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			if apierrors.IsAlreadyExists(err) {
				err = nil
			}
			return true, err
		})
		if err != nil {
			return fmt.Errorf("%s %s: %w", kind.Kind, o.GetName(), err)
		}
	}
	return nil
}

// nfd creates the CRDs and the rule of nfd.yaml.
func nfd(t *testing.T) {
	t.Helper()
	text, err := manifests.NFD(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"CustomResourceDefinition", "NodeFeatureRule"} {
		if err := apply(t.Context(), text, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind }); err != nil {
			t.Fatal(err)
		}
	}
}

// newNode makes a Node.
func newNode(t *testing.T, labels map[string]string) string {
	t.Helper()
	name := "n-" + rand.String(6)
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	return name
}

func getNode(t *testing.T, name string) *v1.Node {
	t.Helper()
	n, err := admin.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// as returns what feature discovery of a node reaches the API server with: a token of its service account that
// is bound to the node, as that of a pod there would be.
func as(t *testing.T, node string) *rest.Config {
	t.Helper()
	config, err := cluster.ConfigOnNode(t.Context(), node, simnode.DiscoveryAccount)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// until waits for something that comes about by itself.
func until(t *testing.T, what string, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, last)
	}
}
