package simnode

import (
	"context"
	"encoding/json"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/sandbox/simnode/fault"
)

// Kubelet's own figures. A lease renewed this often keeps a node ready even with the shortest grace
// period the controller manager accepts in tests.
const (
	leaseSeconds   = 40
	heartbeatEvery = 5 * time.Second
)

// heartbeats renews all leases in turn until ctx ends, and reports a node ready again that the
// controller manager has given up.
func (m *Manager) heartbeats(ctx context.Context) {
	tick := time.NewTicker(heartbeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		m.mu.Lock()
		nodes := make([]*node, 0, len(m.nodes))
		for _, n := range m.nodes {
			nodes = append(nodes, n)
		}
		m.mu.Unlock()
		for _, n := range nodes {
			if err := n.heartbeat(ctx); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Heartbeat was not written, trying again", "node", n.Name)
			}
		}
	}
}

func (n *node) heartbeat(ctx context.Context) error {
	obj, err := n.manager.nodeLister.Get(n.Name)
	if err != nil {
		return nil // deleted
	}
	if f, err := fault.Parse(obj.Annotations[FaultAnnotation]); err == nil && f.Stop {
		return nil
	}
	if err := n.renewLease(ctx, time.Now()); err != nil {
		return err
	}
	for _, c := range obj.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return n.writeReady(ctx, time.Now())
}

func (n *node) renewLease(ctx context.Context, now time.Time) error {
	leases := n.manager.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	renewed := metav1.NewMicroTime(now)
	seconds := int32(leaseSeconds)
	spec := coordinationv1.LeaseSpec{HolderIdentity: &n.Name, LeaseDurationSeconds: &seconds, RenewTime: &renewed}
	lease, err := leases.Get(ctx, n.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: spec}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec = spec
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// writeReady sets the node's conditions to those of a healthy node.
func (n *node) writeReady(ctx context.Context, now time.Time) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": readyConditions(now)}})
	if err != nil {
		return err
	}
	_, err = n.manager.client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func readyConditions(now time.Time) []corev1.NodeCondition {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason,
			LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
		}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
	}
}
