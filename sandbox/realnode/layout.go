package realnode

import "path/filepath"

// Paths that kubelet, containerd and CNI do not let be chosen.
const (
	kubeletDir    = "/var/lib/kubelet"
	pluginDir     = kubeletDir + "/device-plugins"
	containerLogs = "/var/log/containers"
	shimSockets   = "/run/containerd/s"
	cniResults    = "/var/lib/cni/results"
)

// layout is the node's folder. Socket paths are short: the kernel takes 108 bytes.
type layout struct{ dir string }

func (l layout) path(parts ...string) string {
	return filepath.Join(append([]string{l.dir}, parts...)...)
}

func (l layout) engineSocket() string     { return l.path("c.sock") }
func (l layout) engineConfig() string     { return l.path("containerd.toml") }
func (l layout) nriSocket() string        { return l.path("nri.sock") }
func (l layout) cniConfDir() string       { return l.path("cni") }
func (l layout) cdiDir() string           { return l.path("cdi") }
func (l layout) kubeletRoot() string      { return l.path("k") }
func (l layout) kubeletConfig() string    { return l.path("kubelet.yaml") }
func (l layout) podLogs() string          { return l.path("podlogs") }
func (l layout) hostRoot() string         { return l.path("host") }
func (l layout) log(name string) string   { return l.path("logs", name+".log") }
func (l layout) pid(name string) string   { return l.path("run", name+".pid") }
func (l layout) image(name string) string { return l.path("images", name+".tar") }
