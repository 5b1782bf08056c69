// Package agent_test runs the node agent against a real API server, with the rights it ships with, and the
// imitation of kubelet's device manager. Each test has a node and a namespace of its own.
package agent_test

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

// cluster is the API server that all tests share; admin may do everything there.
var (
	cluster *sandbox.Sandbox
	admin   kubernetes.Interface
)

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
	dir, err := os.MkdirTemp("", "gcu-agent-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if cluster, err = sandbox.Start(context.Background(), sandbox.Options{DataDir: dir, Log: os.Stderr}); err != nil {
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
