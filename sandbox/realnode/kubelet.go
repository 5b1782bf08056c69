package realnode

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/topscloud/topscloud/sandbox/binaries"
	"github.com/topscloud/topscloud/sandbox/process"
)

// writeKubeletConfig writes kubelet's configuration. What Options say goes over it, key by key.
func (n *Node) writeKubeletConfig() error {
	credentials, err := n.o.Sandbox.Join(n.o.Name, n.subnet.node())
	if err != nil {
		return err
	}
	n.kubeconfig = credentials.Kubeconfig
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	n.healthPort = ports[1]
	l := n.layout
	if err := os.WriteFile(l.path("resolv.conf"), nil, 0o644); err != nil {
		return err
	}
	config := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": n.subnet.node(), "port": ports[0], "healthzBindAddress": "127.0.0.1", "healthzPort": ports[1],
		"tlsCertFile": credentials.Cert, "tlsPrivateKeyFile": credentials.Key,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false}, "webhook": map[string]any{"enabled": true},
			"x509": map[string]any{"clientCAFile": credentials.CA},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"containerRuntimeEndpoint": "unix://" + l.engineSocket(),
		"podLogsDir":               l.podLogs(), "volumePluginDir": l.path("volumeplugins"), "resolvConf": l.path("resolv.conf"),
		"clusterDNS": []string{n.subnet.node()}, // nobody answers there; without one, each pod gets an event
		// Everything that is counted or cleaned up hangs below one cgroup of this node.
		"cgroupDriver": "cgroupfs", "cgroupRoot": n.state.Cgroup, "failCgroupV1": false, "enforceNodeAllocatable": []string{},
		"localStorageCapacityIsolation": false, "failSwapOn": false, "makeIPTablesUtilChains": false,
		"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
		"evictionHard": map[string]string{
			"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.inodesFree": "0%", "memory.available": "10Mi",
		},
		"maxPods": 200, "eventRecordQPS": 0, "kubeAPIQPS": 200, "kubeAPIBurst": 400,
		// A node's resources are written with its status; the default of 10 s would be the time of each test.
		"nodeStatusUpdateFrequency": "1s",
		// A sleeping test is a slow test: a container that crashes is back within a second.
		"crashLoopBackOff": map[string]string{"maxContainerRestartPeriod": "1s"},
	}
	maps.Copy(config, n.o.Kubelet)
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(l.kubeletConfig(), text, 0o600)
}

// StartKubelet starts kubelet and returns when it answers that it is healthy.
func (n *Node) StartKubelet(ctx context.Context) error {
	args := []string{
		"--config=" + n.layout.kubeletConfig(), "--kubeconfig=" + n.kubeconfig, "--root-dir=" + n.layout.kubeletRoot(),
		"--cert-dir=" + n.layout.path("pki"), "--hostname-override=" + n.o.Name, "--node-ip=" + n.subnet.node(), "--v=4",
	}
	p, err := process.Start(process.Spec{
		Name: kubeletName, Path: n.o.Binaries.Path(binaries.Kubelet), Args: append(args, n.o.KubeletArgs...), Dir: n.layout.dir,
		LogFile: n.layout.log(kubeletName), PIDFile: n.layout.pid(kubeletName),
	})
	if err != nil {
		return err
	}
	n.kubelet = p
	return n.until(ctx, p, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/healthz", n.healthPort), nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
			return fmt.Errorf("%s: %s", resp.Status, body)
		}
		return nil
	})
}

// StopKubelet ends kubelet; containers run on.
func (n *Node) StopKubelet(ctx context.Context) { n.kubelet.Stop(ctx, stopGrace) }

// KillKubelet ends kubelet as a crash would.
func (n *Node) KillKubelet() {
	n.kubelet.Kill()
	<-n.kubelet.Done()
}

// RestartKubelet stops kubelet and starts it.
func (n *Node) RestartKubelet(ctx context.Context) error {
	n.StopKubelet(ctx)
	return n.StartKubelet(ctx)
}

// freePorts returns ports of loopback that were free a moment ago.
func freePorts(count int) ([]int, error) {
	var out []int
	for range count {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		out = append(out, l.Addr().(*net.TCPAddr).Port)
	}
	return out, nil
}
