// Package scheduler_test runs the GCUFit plugin inside a real scheduler against a real API server, etcd,
// controller manager and stock scheduler, with simulated nodes. Each test has nodes and a namespace of
// its own and leaves neither behind.
package scheduler_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/sandbox"
)

// cluster is the control plane all tests share; it runs no scheduler of ours.
var cluster *sandbox.Sandbox

// scratch is a folder that goes when the tests end.
var scratch string

// admin is a client that may do everything.
var admin kubernetes.Interface

func TestMain(m *testing.M) {
	// The scheduler's own log would bury the tests' messages; it tells of every fault they make.
	klog.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "gcu-integration-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	scratch = dir
	cluster, err = sandbox.Start(context.Background(), sandbox.Options{
		DataDir: dir, ControllerManager: true, StockScheduler: true, Log: os.Stderr,
		// The gate and the API of in-tree pod groups; nothing else here depends on them.
		FeatureGates: "GenericWorkload=true", RuntimeConfig: "scheduling.k8s.io/v1beta1=true",
	})
	if err != nil {
		return 0, err
	}
	defer cluster.Stop()
	config := cluster.RESTConfig()
	config.QPS, config.Burst = 1000, 2000
	if admin, err = kubernetes.NewForConfig(config); err != nil {
		return 0, err
	}
	return m.Run(), nil
}
