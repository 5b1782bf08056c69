// Package node_test runs the node side on one real node: kubelet, containerd and runc, joined to a real control plane
// with gcu-scheduler, on a made-up machine whose cards are device nodes without a driver. The tests share the
// node and run one after the other.
package node_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/sandbox/binaries"
	"github.com/topscloud/topscloud/sandbox/realnode"
)

const (
	nodeName = "real"
	preset   = "s60x8"
)

// What all tests share; nil when no node can run here.
var (
	cluster *sandbox.Sandbox
	machine *realnode.Node
	admin   kubernetes.Interface
	kubectl string
)

func TestMain(m *testing.M) {
	flag.Parse()
	// What tests wait for is mostly kubelet, once a second, and not the processor.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	klog.SetLogger(logr.Discard())
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if realnode.Check() != nil || testing.Short() {
		return m.Run(), nil // each test says what is missing
	}
	ctx := context.Background()
	set, err := binaries.EnsureNode(ctx, binaries.Options{Log: os.Stderr})
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "gcu-node-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	scheduler := filepath.Join(dir, sandbox.GCUScheduler)
	build := exec.CommandContext(ctx, "go", "build", "-o", scheduler, "../../../scheduler/cmd/gcu-scheduler")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as everything else is built, or nothing is in Go's cache
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build gcu-scheduler: %w\n%s", err, out)
	}
	cluster, err = sandbox.Start(ctx, sandbox.Options{
		DataDir: filepath.Join(dir, "sandbox"), Binaries: set, ControllerManager: true, StockScheduler: true,
		GCUScheduler: scheduler, Log: os.Stderr,
	})
	if err != nil {
		return 0, err
	}
	defer cluster.Stop()
	if admin, err = kubernetes.NewForConfig(cluster.RESTConfig()); err != nil {
		return 0, err
	}
	kubectl = set.Path(binaries.Kubectl)
	made, err := sim.Preset(preset)
	if err != nil {
		return 0, err
	}
	machine, err = realnode.Start(ctx, realnode.Options{
		Name: nodeName, Sandbox: cluster, Binaries: set, Machine: &made, NRI: true, Log: os.Stderr,
	})
	if err != nil {
		return 0, err
	}
	defer func() {
		if code != 0 {
			keepLogs()
		}
		err = errors.Join(err, machine.Stop())
	}()
	return m.Run(), nil
}

// keepLogs copies the logs of a failed run out of the folder that is about to go.
func keepLogs() {
	dir := os.Getenv("TOPSCLOUD_TEST_LOGS")
	if dir == "" {
		fmt.Fprintln(os.Stderr, "set TOPSCLOUD_TEST_LOGS to a folder to keep the logs of kubelet and containerd")
		return
	}
	files := []string{
		machine.LogFile("kubelet"), machine.LogFile("containerd"), machine.LogFile("gcu-device-plugin"), cluster.Layout().LogFile(sandbox.GCUScheduler),
		cluster.Layout().LogFile(sandbox.APIServer),
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}
