package realnode

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/sandbox/binaries"
	"github.com/topscloud/topscloud/sandbox/process"
)

// writeEngineConfig writes containerd's configuration and that of the pods' network.
func (n *Node) writeEngineConfig() error {
	runc, err := findRunc()
	if err != nil {
		return err
	}
	plugins, err := findCNI()
	if err != nil {
		return err
	}
	l := n.layout
	// Keys that are not here keep containerd's defaults. oom_score_adj is only lowered by who has CAP_SYS_RESOURCE; runc
	// fails without restrict_oom_score_adj where that is missing. The internal loopback leaves no result in /var/lib/cni.
	text := fmt.Sprintf(`version = 3
root = %[1]q
state = %[2]q

[grpc]
  address = %[3]q

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %[4]q

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  cdi_spec_dirs = [%[5]q]

  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = [%[6]q]
    conf_dir = %[7]q
    use_internal_loopback = true

  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    runtime_path = %[8]q

    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = %[9]q
      Root = %[10]q
      SystemdCgroup = false

[plugins.'io.containerd.grpc.v1.cri']
  stream_server_address = '127.0.0.1'

[plugins.'io.containerd.internal.v1.opt']
  path = %[11]q

[plugins.'io.containerd.nri.v1.nri']
  disable = %[12]t
  socket_path = %[13]q
  plugin_path = %[14]q
  plugin_config_path = %[14]q
`, l.path("root"), l.path("state"), l.engineSocket(), ProbeImage, l.cdiDir(), plugins, l.cniConfDir(),
		n.o.Binaries.Path(binaries.ContainerdShim), runc, l.path("runc"), l.path("opt"),
		!n.o.NRI, l.nriSocket(), l.path("nri"))
	if err := os.WriteFile(l.engineConfig(), []byte(text), 0o600); err != nil {
		return err
	}
	network, err := json.MarshalIndent(map[string]any{
		"cniVersion": "1.0.0", "name": n.state.Network,
		"plugins": []any{map[string]any{
			"type": "bridge", "bridge": n.state.Bridge, "isGateway": false, "ipMasq": false,
			"ipam": map[string]any{
				"type": "host-local", "dataDir": l.path("ipam"),
				"ranges": []any{[]any{map[string]string{"subnet": n.subnet.String(), "rangeStart": n.subnet.firstPod()}}},
			},
		}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(l.path("cni", "10-topscloud.conflist"), network, 0o600)
}

func (n *Node) startEngine(ctx context.Context) error {
	p, err := process.Start(process.Spec{
		Name: containerdName, Path: n.o.Binaries.Path(binaries.Containerd),
		Args: []string{"--config", n.layout.engineConfig()}, Dir: n.layout.dir,
		LogFile: n.layout.log(containerdName), PIDFile: n.layout.pid(containerdName),
	})
	if err != nil {
		return err
	}
	n.engine = p
	return n.until(ctx, p, func(ctx context.Context) error {
		status, err := n.runtime.Status(ctx, &runtimeapi.StatusRequest{})
		if err != nil {
			return err
		}
		for _, c := range status.GetStatus().GetConditions() {
			if (c.Type == runtimeapi.RuntimeReady || c.Type == runtimeapi.NetworkReady) && !c.Status {
				return fmt.Errorf("%s: %s", c.Type, c.Message)
			}
		}
		return nil
	})
}

// connect makes the clients of the engine. They connect when they are used, and again after a restart.
func (n *Node) connect() error {
	conn, err := kubelet.Dial(n.layout.engineSocket())
	if err != nil {
		return err
	}
	n.conn, n.runtime, n.images = conn, runtimeapi.NewRuntimeServiceClient(conn), runtimeapi.NewImageServiceClient(conn)
	return nil
}

// importImage hands an archive to the engine and waits until kubelet would find the image.
func (n *Node) importImage(ctx context.Context, name, path string) error {
	out, err := exec.CommandContext(ctx, n.o.Binaries.Path(binaries.Ctr),
		"--address", n.layout.engineSocket(), "--namespace", "k8s.io", "images", "import", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("import image %s: %w\n%s", name, err, strings.TrimSpace(string(out)))
	}
	return n.until(ctx, n.engine, func(ctx context.Context) error {
		answer, err := n.images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: name}})
		if err == nil && answer.Image == nil {
			err = fmt.Errorf("image %s is not there", name)
		}
		return err
	})
}

// removePods takes all pods off the engine, as far as it still can.
func (n *Node) removePods(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	list, err := n.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return // sweep takes the rest
	}
	done := make(chan struct{})
	for _, s := range list.Items {
		go func() {
			defer func() { done <- struct{}{} }()
			if _, err := n.runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: s.Id}); err == nil {
				_, _ = n.runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.Id})
			}
		}()
	}
	for range list.Items {
		<-done
	}
}

// until repeats a check until it passes, the process ends or a minute is over.
func (n *Node) until(ctx context.Context, p *process.Process, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready within %s", readyTimeout))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return fmt.Errorf("%w; its log ends with:\n%s", p.Err(), p.LogTail(15))
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; last answer: %w; its log ends with:\n%s", p.Name(), context.Cause(ctx), err, p.LogTail(15))
		}
	}
}
