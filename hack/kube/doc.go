// Package kube pins the real control plane that the sandbox runs: etcd, kube-apiserver,
// kube-controller-manager, the stock kube-scheduler and kubectl, and the kubelet of the tests' real node, all built
// from modules. It is a module of its own so that their dependencies never enter the product's.
package kube
