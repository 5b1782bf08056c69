// Package operator_test gives the CRD of the operator and resources that people have to a real API server, with the
// kubectl they would use.
package operator_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/topscloud/topscloud/manifests"
	v1 "github.com/topscloud/topscloud/operator/api/v1"
	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/sandbox/binaries"
	"github.com/topscloud/topscloud/test/integration/controlplane"
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
	controlplane.Main(m, sandbox.Options{}, prepare)
}

func prepare(ctx context.Context, p *controlplane.Plane) error {
	cluster = p.Sandbox
	set, err := binaries.Ensure(ctx, binaries.Options{Log: os.Stderr})
	if err != nil {
		return err
	}
	kubectl = set.Path(binaries.Kubectl)
	if objects, err = dynamic.NewForConfig(p.Config); err != nil {
		return err
	}
	resources = objects.Resource(schema.GroupVersionResource{Group: v1.GroupName, Version: v1.Version, Resource: v1.Plural})
	text, err := manifests.GcuResourceCRD()
	if err != nil {
		return err
	}
	// As an administrator installs it; client-side apply also holds the CRD to the size of an annotation.
	for _, args := range [][]string{
		{"apply", "-f", "-"},
		{"wait", "--for=condition=Established", "--timeout=" + patience.String(), "crd/" + v1.Plural + "." + v1.GroupName},
	} {
		if out, err := command(ctx, string(text), args...); err != nil {
			return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
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
