package binaries

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// The versions in hack/kube/go.mod; a test compares them. They stand here as well so that a binary
// that runs outside the source tree still finds the cache.
const (
	KubernetesVersion = "v1.37.2"
	EtcdVersion       = "v3.7.0"
	// OldestKubernetesVersion is that of hack/kube-oldest/go.mod.
	OldestKubernetesVersion = "v1.34.4"
	// ContainerdVersion is that of hack/containerd/go.mod.
	ContainerdVersion = "v2.4.2"
	// PrometheusVersion is that of hack/prometheus/go.mod. Its modules count v3.16.0 as v0.316.0.
	PrometheusVersion = "v0.316.0"
)

// Names of the binaries.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
)

// Names of the binaries that EnsureNode adds.
const (
	Kubelet        = "kubelet"
	Containerd     = "containerd"
	ContainerdShim = "containerd-shim-runc-v2"
	Ctr            = "ctr"
)

// Names of the binaries that EnsurePrometheus returns.
const (
	Prometheus = "prometheus"
	Promtool   = "promtool"
)

// target is one binary and the package it is built from.
type target struct{ name, pkg string }

func targets() []target {
	return []target{
		{Etcd, "go.etcd.io/etcd/server/v3"},
		{APIServer, "k8s.io/kubernetes/cmd/kube-apiserver"},
		{ControllerManager, "k8s.io/kubernetes/cmd/kube-controller-manager"},
		{Scheduler, "k8s.io/kubernetes/cmd/kube-scheduler"},
		{Kubectl, "k8s.io/kubernetes/cmd/kubectl"},
	}
}

// release is what one module of hack builds, and the cache folder it fills.
type release struct {
	module  string // folder below the source root
	version string
	flags   []string // of go build
	key     string
	targets []target
}

func kubeFlags(version string) []string {
	return []string{"-ldflags", "-X k8s.io/component-base/version.gitVersion=" + version}
}

func current() release {
	return release{
		module: filepath.Join("hack", "kube"), version: KubernetesVersion, flags: kubeFlags(KubernetesVersion),
		key: Key(), targets: targets(),
	}
}

// kubelet is of the current release and lands beside the control plane. It is a release of its own so that those who need no
// node do not build it.
func kubelet() release {
	r := current()
	r.targets = []target{{Kubelet, "k8s.io/kubernetes/cmd/kubelet"}}
	return r
}

// engine is the container engine of a node. Without the tags containerd wants C.
func engine() release {
	const module = "github.com/containerd/containerd/v2"
	return release{
		module: filepath.Join("hack", "containerd"), version: ContainerdVersion,
		flags: []string{
			"-tags", "no_btrfs no_zfs no_devmapper",
			"-ldflags", "-X " + module + "/version.Version=" + ContainerdVersion,
		},
		key: fmt.Sprintf("containerd-%s_%s-%s", ContainerdVersion, runtime.GOOS, runtime.GOARCH),
		targets: []target{
			{Containerd, module + "/cmd/containerd"},
			{ContainerdShim, module + "/cmd/containerd-shim-runc-v2"},
			{Ctr, module + "/cmd/ctr"},
		},
	}
}

// monitoring is Prometheus. Its pages are not in the modules; its API is whole. Without the tags it brings the clients
// of a dozen clouds, which a sandbox on loopback has no use for.
func monitoring() release {
	const module = "github.com/prometheus/prometheus"
	return release{
		module: filepath.Join("hack", "prometheus"), version: PrometheusVersion,
		flags:   []string{"-tags", "remove_all_sd", "-ldflags", "-X github.com/prometheus/common/version.Version=" + PrometheusVersion},
		key:     fmt.Sprintf("prometheus-%s_%s-%s", PrometheusVersion, runtime.GOOS, runtime.GOARCH),
		targets: []target{{Prometheus, module + "/cmd/prometheus"}, {Promtool, module + "/cmd/promtool"}},
	}
}

// oldest is the control plane of the first minor release that gcu-scheduler supports. The rest of a
// sandbox beside it is of the current release.
func oldest() release {
	return release{
		module: filepath.Join("hack", "kube-oldest"), version: OldestKubernetesVersion, flags: kubeFlags(OldestKubernetesVersion),
		key: fmt.Sprintf("k8s-%s_%s-%s", OldestKubernetesVersion, runtime.GOOS, runtime.GOARCH),
		targets: []target{
			{APIServer, "k8s.io/kubernetes/cmd/kube-apiserver"},
			{ControllerManager, "k8s.io/kubernetes/cmd/kube-controller-manager"},
		},
	}
}

// Set is a complete set of binaries. The zero value is none.
type Set struct {
	dir string
	// older is the folder of the API server and the controller manager if they are of another release.
	older string
	// engine is the folder of the container engine, if the set has one.
	engine string
}

// Path returns the file of a binary named above.
func (s Set) Path(name string) string {
	if s.older != "" && (name == APIServer || name == ControllerManager) {
		return filepath.Join(s.older, name)
	}
	if name == Containerd || name == ContainerdShim || name == Ctr {
		return filepath.Join(s.engine, name)
	}
	return filepath.Join(s.dir, name)
}

// Dir returns the folder that holds the binaries of the current release.
func (s Set) Dir() string { return s.dir }

// EngineDir returns the folder that holds the container engine, "" when the set has none.
func (s Set) EngineDir() string { return s.engine }

// CacheRoot returns the folder that holds one folder per pair of versions:
// $XDG_CACHE_HOME/topscloud/kube, or the same below ~/.cache.
func CacheRoot() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder: %w", err)
	}
	return filepath.Join(dir, "topscloud", "kube"), nil
}

// Key names the folder of these versions on this platform.
func Key() string {
	return fmt.Sprintf("k8s-%s_etcd-%s_%s-%s", KubernetesVersion, EtcdVersion, runtime.GOOS, runtime.GOARCH)
}

// missing returns the targets that dir lacks.
func missing(dir string, targets []target) ([]target, error) {
	var out []target
	for _, t := range targets {
		info, err := os.Stat(filepath.Join(dir, t.name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			out = append(out, t)
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
			return nil, fmt.Errorf("%s: not an executable file; remove it", filepath.Join(dir, t.name))
		}
	}
	return out, nil
}

// FindSource looks for the folder with hack/kube/go.mod: upwards from the working directory, then
// upwards from the running program.
func FindSource() (string, bool) {
	var starts []string
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	for _, dir := range starts {
		for {
			if _, err := os.Stat(filepath.Join(dir, "hack", "kube", "go.mod")); err == nil {
				return dir, true
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	return "", false
}
