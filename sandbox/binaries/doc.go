// Package binaries provides the real control plane as files: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and kubectl, built once from the module in hack/kube and
// kept in the user's cache folder under a name that carries both versions and the platform.
//
// EnsureNode adds what a real node needs: kubelet, from the same module, and containerd with its shim and ctr, from
// hack/containerd.
//
// Ensure returns at once when the cache is complete. Otherwise it needs Go and the source tree; it
// builds one binary at a time, shows what it builds and for how long, and puts each finished file in
// place by rename, so a build that is interrupted loses at most the binary it was at. Two builders of
// the same cache folder take turns. Files already there are never rebuilt: remove the folder to force.
package binaries
