package sandbox

import (
	"fmt"
	"strings"

	"github.com/topscloud/topscloud/sandbox/binaries"
	"github.com/topscloud/topscloud/sandbox/process"
)

// Listeners that get a port. etcd has two.
const etcdPeer = "etcd-peer"

func (s *Sandbox) listeners() []string {
	out := []string{Etcd, etcdPeer, APIServer}
	if s.options.ControllerManager {
		out = append(out, ControllerManager)
	}
	if s.options.StockScheduler {
		out = append(out, StockScheduler)
	}
	if s.options.GCUScheduler != "" {
		out = append(out, GCUScheduler)
	}
	if s.options.Prometheus != "" {
		out = append(out, Prometheus, nodePrograms)
	}
	if s.options.Exporters {
		for _, m := range s.options.Machines {
			out = append(out, exporterListener+m.Name)
		}
	}
	return out
}

func (s *Sandbox) url(listener string) string {
	return urlOf(listener, s.port(listener))
}

// urlOf is where a component serves. All but Prometheus have certificates.
func urlOf(component string, port int) string {
	scheme := "https"
	if component == Prometheus {
		scheme = "http"
	}
	return fmt.Sprintf("%s://127.0.0.1:%d", scheme, port)
}

func (s *Sandbox) spec(name, path string, args []string) process.Spec {
	return process.Spec{
		Name: name, Path: path, Args: args, Dir: s.layout.Dir,
		LogFile: s.layout.LogFile(name), PIDFile: s.layout.PIDFile(name),
	}
}

func (s *Sandbox) etcdSpec() (process.Spec, error) {
	pair, err := s.authority.Server(Etcd)
	if err != nil {
		return process.Spec{}, err
	}
	cert, key, err := s.authority.Write(Etcd, pair)
	if err != nil {
		return process.Spec{}, err
	}
	ca := s.authority.CAFile()
	return s.spec(Etcd, s.options.Binaries.Path(binaries.Etcd), []string{
		"--name=sandbox", "--data-dir=" + s.layout.etcd(),
		"--listen-client-urls=" + s.url(Etcd), "--advertise-client-urls=" + s.url(Etcd),
		"--listen-peer-urls=" + s.url(etcdPeer), "--initial-advertise-peer-urls=" + s.url(etcdPeer),
		"--initial-cluster=sandbox=" + s.url(etcdPeer),
		"--cert-file=" + cert, "--key-file=" + key, "--trusted-ca-file=" + ca, "--client-cert-auth",
		"--peer-cert-file=" + cert, "--peer-key-file=" + key, "--peer-trusted-ca-file=" + ca, "--peer-client-cert-auth",
		"--unsafe-no-fsync", "--auto-compaction-retention=15m", "--log-level=warn",
	}), nil
}

func (s *Sandbox) apiServerSpec() (process.Spec, error) {
	etcdClient, err := s.authority.Client("kube-apiserver-etcd-client")
	if err != nil {
		return process.Spec{}, err
	}
	etcdCert, etcdKey, err := s.authority.Write("apiserver-etcd-client", etcdClient)
	if err != nil {
		return process.Spec{}, err
	}
	server, err := s.authority.Server(APIServer, "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.96.0.1")
	if err != nil {
		return process.Spec{}, err
	}
	cert, key, err := s.authority.Write(APIServer, server)
	if err != nil {
		return process.Spec{}, err
	}
	front, err := s.authority.Client("front-proxy-client")
	if err != nil {
		return process.Spec{}, err
	}
	frontCert, frontKey, err := s.authority.Write("front-proxy", front)
	if err != nil {
		return process.Spec{}, err
	}
	kubelets, err := s.authority.Client(kubeletClientUser)
	if err != nil {
		return process.Spec{}, err
	}
	kubeletCert, kubeletKey, err := s.authority.Write("apiserver-kubelet-client", kubelets)
	if err != nil {
		return process.Spec{}, err
	}
	ca := s.authority.CAFile()
	args := []string{
		"--etcd-servers=" + s.url(Etcd), "--etcd-cafile=" + ca, "--etcd-certfile=" + etcdCert, "--etcd-keyfile=" + etcdKey,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.port(APIServer)),
		"--tls-cert-file=" + cert, "--tls-private-key-file=" + key, "--client-ca-file=" + ca,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + s.authority.ServiceAccountKeyFile(),
		"--service-account-signing-key-file=" + s.authority.ServiceAccountKeyFile(),
		"--service-cluster-ip-range=10.96.0.0/16",
		// The endpoint reconciler refuses to publish a loopback address.
		"--endpoint-reconciler-type=none",
		"--requestheader-client-ca-file=" + ca, "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + frontCert, "--proxy-client-key-file=" + frontKey,
		"--kubelet-client-certificate=" + kubeletCert, "--kubelet-client-key=" + kubeletKey,
		"--kubelet-certificate-authority=" + ca, "--kubelet-preferred-address-types=InternalIP",
		"--profiling=false",
	}
	if !s.options.ControllerManager {
		args = append(args, "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition")
	}
	if s.options.RuntimeConfig != "" {
		args = append(args, "--runtime-config="+s.options.RuntimeConfig)
	}
	spec := s.spec(APIServer, s.options.Binaries.Path(binaries.APIServer), s.gates(args))
	// Whom it asks is on this machine, kubelets that are not on loopback included.
	spec.Env = []string{"NO_PROXY=*", "no_proxy=*"}
	return spec, nil
}

func (s *Sandbox) controllerManagerSpec() (process.Spec, error) {
	common, err := s.clientFlags(ControllerManager, "system:kube-controller-manager")
	if err != nil {
		return process.Spec{}, err
	}
	args := append(common,
		"--leader-elect=false", "--use-service-account-credentials=true",
		"--service-account-private-key-file="+s.authority.ServiceAccountKeyFile(),
		"--root-ca-file="+s.authority.CAFile(),
		"--cluster-signing-cert-file="+s.authority.CAFile(), "--cluster-signing-key-file="+s.authority.CAKeyFile(),
		// Starting some forty controllers within the default of 20 requests a second takes five seconds.
		"--kube-api-qps=200", "--kube-api-burst=400",
		"--profiling=false",
	)
	if g := s.options.NodeMonitorGracePeriod; g > 0 {
		args = append(args, "--node-monitor-grace-period="+g.String(), "--node-monitor-period=1s")
	}
	return s.spec(ControllerManager, s.options.Binaries.Path(binaries.ControllerManager), s.gates(args)), nil
}

func (s *Sandbox) stockSchedulerSpec() (process.Spec, error) {
	args, err := s.clientFlags(StockScheduler, "system:kube-scheduler")
	if err != nil {
		return process.Spec{}, err
	}
	args = append(args, "--leader-elect=false", "--profiling=false")
	return s.spec(StockScheduler, s.options.Binaries.Path(binaries.Scheduler), s.gates(args)), nil
}

func (s *Sandbox) gcuSchedulerSpec() (process.Spec, error) {
	args, err := s.clientFlags(GCUScheduler, schedulerUser, serviceAccountGroups...)
	if err != nil {
		return process.Spec{}, err
	}
	config, err := s.writeSchedulerConfig()
	if err != nil {
		return process.Spec{}, err
	}
	// With a configuration file, --kubeconfig is refused or ignored; the file names it.
	args = append(withoutFlag(args, "--kubeconfig="), "--config="+config)
	args = append(args, s.options.GCUSchedulerArgs...)
	return s.spec(GCUScheduler, s.options.GCUScheduler, s.gates(args)), nil
}

// clientFlags are the flags every component on top of the API server takes: where it listens and who
// it is.
func (s *Sandbox) clientFlags(name, user string, groups ...string) ([]string, error) {
	kubeconfig := s.layout.Config(name + ".kubeconfig")
	if err := s.writeKubeconfig(kubeconfig, user, groups...); err != nil {
		return nil, err
	}
	server, err := s.authority.Server(name)
	if err != nil {
		return nil, err
	}
	cert, key, err := s.authority.Write(name, server)
	if err != nil {
		return nil, err
	}
	return []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", s.port(name)),
		"--tls-cert-file=" + cert, "--tls-private-key-file=" + key,
	}, nil
}

func (s *Sandbox) gates(args []string) []string {
	if s.options.FeatureGates != "" {
		args = append(args, "--feature-gates="+s.options.FeatureGates)
	}
	return args
}

func withoutFlag(args []string, prefix string) []string {
	out := make([]string, 0, len(args))
	for _, a := range args {
		if !strings.HasPrefix(a, prefix) {
			out = append(out, a)
		}
	}
	return out
}
