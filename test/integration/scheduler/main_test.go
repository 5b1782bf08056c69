// Package scheduler_test runs the GCUFit plugin inside a real scheduler against a real API server, etcd,
// controller manager and stock scheduler, with simulated nodes. Each test has nodes and a namespace of
// its own and leaves neither behind.
package scheduler_test

import (
	"context"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/test/integration/controlplane"
)

// cluster is the control plane all tests share; it runs no scheduler of ours.
var cluster *sandbox.Sandbox

// scratch is a folder that goes when the tests end.
var scratch string

// admin is a client that may do everything.
var admin kubernetes.Interface

func TestMain(m *testing.M) {
	// The gate and the API of in-tree pod groups; nothing else here depends on them.
	o := sandbox.Options{ControllerManager: true, StockScheduler: true,
		FeatureGates: "GenericWorkload=true", RuntimeConfig: "scheduling.k8s.io/v1beta1=true"}
	controlplane.Main(m, o, func(_ context.Context, p *controlplane.Plane) error {
		cluster, admin, scratch = p.Sandbox, p.Admin, p.Layout().Dir
		return nil
	})
}
