package nodetest

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

// Cluster is the API server that all tests of a package share; Admin may do everything there.
var (
	Cluster *sandbox.Sandbox
	Admin   kubernetes.Interface
)

// Main runs a package's tests with an API server.
func Main(m *testing.M) {
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
	dir, err := os.MkdirTemp("", "gcu-node-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if Cluster, err = sandbox.Start(context.Background(), sandbox.Options{DataDir: dir, Log: os.Stderr}); err != nil {
		return 0, err
	}
	defer Cluster.Stop()
	config := Cluster.RESTConfig()
	config.QPS, config.Burst = 1000, 2000
	if Admin, err = kubernetes.NewForConfig(config); err != nil {
		return 0, err
	}
	return m.Run(), nil
}
