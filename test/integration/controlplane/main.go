// Package controlplane starts the control plane that the tests of a package share.
package controlplane

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/sandbox"
)

// Plane is a running control plane.
type Plane struct {
	*sandbox.Sandbox
	// Config and Admin may do everything, without a limit that a test would feel.
	Config *rest.Config
	Admin  kubernetes.Interface
}

// Main runs a package's tests with a control plane, in a folder of its own, and ends the process. prepare takes it over
// before the first test. What the programs under test log would bury the tests' messages; it is shown with GCU_TEST_LOG.
func Main(m *testing.M, o sandbox.Options, prepare func(context.Context, *Plane) error) {
	if os.Getenv("GCU_TEST_LOG") == "" {
		klog.SetLogger(logr.Discard())
	}
	code, err := run(m, o, prepare)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, o sandbox.Options, prepare func(context.Context, *Plane) error) (int, error) {
	dir, err := os.MkdirTemp("", "gcu-plane-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	o.DataDir, o.Log = dir, os.Stderr
	ctx := context.Background()
	p := &Plane{}
	if p.Sandbox, err = sandbox.Start(ctx, o); err != nil {
		return 0, err
	}
	defer p.Stop()
	p.Config = p.RESTConfig()
	p.Config.QPS, p.Config.Burst = 1000, 2000
	if p.Admin, err = kubernetes.NewForConfig(p.Config); err != nil {
		return 0, err
	}
	if err := prepare(ctx, p); err != nil {
		return 0, err
	}
	return m.Run(), nil
}
