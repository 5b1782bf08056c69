// Package operator_test gives the CRD of the operator and resources that people have to a real API server, with the
// kubectl they would use.
package operator_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/manifests"
	v1 "github.com/topscloud/topscloud/operator/api/v1"
	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/sandbox/binaries"
)

// cluster is the API server that all tests share, with the CRD in it.
var (
	cluster   *sandbox.Sandbox
	kubectl   string
	resources dynamic.ResourceInterface
	objects   dynamic.Interface
)

// patience bounds every wait; nothing here takes a tenth of it on an idle machine.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv("GCU_TEST_LOG") == "" {
		klog.SetLogger(logr.Discard())
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "gcu-operator-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	set, err := binaries.Ensure(ctx, binaries.Options{Log: os.Stderr})
	if err != nil {
		return 0, err
	}
	kubectl = set.Path(binaries.Kubectl)
	if cluster, err = sandbox.Start(ctx, sandbox.Options{DataDir: filepath.Join(dir, "data"), Binaries: set, Log: os.Stderr}); err != nil {
		return 0, err
	}
	defer cluster.Stop()
	if objects, err = dynamic.NewForConfig(cluster.RESTConfig()); err != nil {
		return 0, err
	}
	resources = objects.Resource(schema.GroupVersionResource{Group: v1.GroupName, Version: v1.Version, Resource: v1.Plural})
	text, err := manifests.GcuResourceCRD()
	if err != nil {
		return 0, err
	}
	// As an administrator installs it; client-side apply also holds the CRD to the size of an annotation.
	for _, args := range [][]string{
		{"apply", "-f", "-"},
		{"wait", "--for=condition=Established", "--timeout=" + patience.String(), "crd/" + v1.Plural + "." + v1.GroupName},
	} {
		if out, err := command(ctx, string(text), args...); err != nil {
			return 0, fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return m.Run(), nil
}

// command runs kubectl with a text as its input, and returns what it prints.
func command(ctx context.Context, input string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, kubectl, append([]string{"--kubeconfig", cluster.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
