package sandbox

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/manifests"
	"github.com/topscloud/topscloud/sandbox/apply"
)

// simNodesRBAC is what a kubelet and a node agent may do, for all simulated nodes together. Like
// kubelet, they never create pods and never bind them.
const simNodesRBAC = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gcu-sandbox-nodes}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [create, get, list, watch, patch, update]}
- {apiGroups: [""], resources: [nodes/status], verbs: [patch, update]}
- {apiGroups: [""], resources: [pods], verbs: [get, list, watch, delete]}
- {apiGroups: [""], resources: [pods/status], verbs: [patch, update]}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gcu-sandbox-nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gcu-sandbox-nodes}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: gcu-sandbox-nodes}
`

// bootstrap puts the objects into the cluster that the parts after the API server need.
func (s *Sandbox) bootstrap(ctx context.Context) error {
	applier, err := apply.New(s.RESTConfig())
	if err != nil {
		return err
	}
	rbac, err := manifests.SchedulerRBAC()
	if err != nil {
		return err
	}
	for _, text := range [][]byte{rbac, []byte(simNodesRBAC)} {
		if _, err := applier.Apply(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// waitForServiceAccount returns when pods can be created in the default namespace: the controller
// manager has made its service account.
func (s *Sandbox) waitForServiceAccount(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("service account default/default: %w", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("service account default/default: %w", context.Cause(ctx))
		}
	}
}
