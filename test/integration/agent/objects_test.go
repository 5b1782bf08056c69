package agent_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/topscloud/topscloud/test/integration/nodetest"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

func limits(name string, amount int64) v1.ResourceList {
	return v1.ResourceList{v1.ResourceName(name): *resource.NewQuantity(amount, resource.DecimalSI)}
}

// initialized does what kubelet does when the init containers are done.
func (n *node) initialized(pod *v1.Pod) {
	n.t.Helper()
	// The agent writes to the pod at the same time.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		p := n.Get(pod)
		p.Status.Phase = v1.PodRunning
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: v1.PodInitialized, Status: v1.ConditionTrue})
		_, err := nodetest.Admin.CoreV1().Pods(n.Namespace).UpdateStatus(n.t.Context(), p, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) label(key, value string) { n.t.Helper(); n.set("labels", key, value) }

func (n *node) annotate(key, value string) { n.t.Helper(); n.set("annotations", key, value) }

func (n *node) set(what, key, value string) {
	n.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{%q:{%q:%q}}}`, what, key, value)
	if _, err := nodetest.Admin.CoreV1().Nodes().Patch(n.t.Context(), n.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) annotatePod(pod *v1.Pod, key, value string) {
	n.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	if _, err := nodetest.Admin.CoreV1().Pods(n.Namespace).Patch(n.t.Context(), pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

// engine makes the node say which container engine it has.
func (n *node) engine(version string) {
	n.t.Helper()
	patch := fmt.Sprintf(`{"status":{"nodeInfo":{"containerRuntimeVersion":%q}}}`, version)
	if _, err := nodetest.Admin.CoreV1().Nodes().Patch(n.t.Context(), n.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		n.t.Fatal(err)
	}
}

// devices are the device nodes that kubelet itself passes to container c.
func (n *node) devices(pod *v1.Pod) string {
	n.t.Helper()
	var out []string
	for _, d := range n.StartContainer(pod, "c").Devices {
		out = append(out, d.ContainerPath)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
