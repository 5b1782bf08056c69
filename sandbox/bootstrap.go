package sandbox

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/manifests"
	"github.com/topscloud/topscloud/sandbox/apply"
)

// simNodesRBAC is what a kubelet and a node agent may do, for all simulated nodes together. Like
// kubelet, they never create pods and never bind them. They patch pods to note what containers see. The last
// binding lets the API server ask real kubelets for logs and exec.
const simNodesRBAC = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gcu-sandbox-nodes}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [create, get, list, watch, patch, update]}
- {apiGroups: [""], resources: [nodes/status], verbs: [patch, update]}
- {apiGroups: [""], resources: [pods], verbs: [get, list, watch, patch, delete]}
- {apiGroups: [""], resources: [pods/status], verbs: [patch, update]}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}
- {apiGroups: [topscloud.dev], resources: [gcurecords], verbs: [write-records]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gcu-sandbox-nodes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gcu-sandbox-nodes}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: gcu-sandbox-nodes}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: gcu-sandbox-kubelet-api}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:kubelet-api-admin"}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: kube-apiserver-kubelet-client}
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
	agent, err := manifests.AgentRBAC()
	if err != nil {
		return err
	}
	discovery, err := manifests.DiscoveryRBAC()
	if err != nil {
		return err
	}
	roles, err := manifests.Roles()
	if err != nil {
		return err
	}
	policy, err := manifests.RecordPolicy(contract.Default())
	if err != nil {
		return err
	}
	for _, text := range [][]byte{rbac, agent, discovery, roles, []byte(simNodesRBAC), policy} {
		if _, err := applier.Apply(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// settle returns when the controller manager has done what a pod needs first: the service account of
// the default namespace is there and no simulated node carries the taint of a node that is not ready.
func (s *Sandbox) settle(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		missing, err := s.missing(ctx, client)
		if err != nil {
			return err
		}
		if missing == "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", missing, context.Cause(ctx))
		}
	}
}

// missing names what settle still waits for.
func (s *Sandbox) missing(ctx context.Context, client kubernetes.Interface) (string, error) {
	_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "service account default/default", nil
	}
	if err != nil {
		return "", fmt.Errorf("service account default/default: %w", err)
	}
	for _, m := range s.options.Machines {
		node, err := client.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
		if err != nil {
			return "", fmt.Errorf("node %s: %w", m.Name, err)
		}
		for _, t := range node.Spec.Taints {
			if t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable {
				return "ready node " + m.Name, nil
			}
		}
	}
	return "", nil
}

// retireNodes deletes the nodes the data folder had and this start does not simulate: nobody renews
// their leases any more.
func (s *Sandbox) retireNodes(ctx context.Context, client kubernetes.Interface) error {
	for _, name := range s.retired {
		if err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("node %s: %w", name, err)
		}
	}
	return nil
}
