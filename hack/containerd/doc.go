// Package containerd pins the container engine that the real node of the tests runs: containerd, its
// shim for runc, and ctr, all built from modules. It is a module of its own so that their dependencies never
// enter the product's.
package containerd
