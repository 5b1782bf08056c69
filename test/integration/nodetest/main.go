package nodetest

import (
	"context"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/test/integration/controlplane"
)

// Cluster is the API server that all tests of a package share; Admin may do everything there.
var (
	Cluster *sandbox.Sandbox
	Admin   kubernetes.Interface
)

// Main runs a package's tests with an API server.
func Main(m *testing.M) {
	controlplane.Main(m, sandbox.Options{}, func(_ context.Context, p *controlplane.Plane) error {
		Cluster, Admin = p.Sandbox, p.Admin
		return nil
	})
}
