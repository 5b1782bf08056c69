// Package oldest pins the oldest control plane that gcu-scheduler is tested with: kube-apiserver and
// kube-controller-manager of the first minor release in docs/support.md.
package oldest

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
