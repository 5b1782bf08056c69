package nodetest

import (
	"context"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/topscloud/topscloud/deviceplugin/kubelet/kubelettest"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/internal/contract"
)

// Container is what one container asks, and its cards in the record.
type Container struct {
	Name     string
	Resource string
	Amount   int64
	Init     bool
	Cards    []contract.CardAllocation
}

// Card returns an entry of a record.
func (n *Node) Card(minor int, mib int64) contract.CardAllocation {
	m, err := sim.Preset(n.machine)
	if err != nil {
		n.t.Fatal(err)
	}
	c := m.ForNode(n.Name).Cards[minor]
	return contract.CardAllocation{Minor: minor, UUID: c.UUID, MemoryMiB: mib, Whole: mib == c.MemoryMiB}
}

// Pod makes a pod that is bound to the node, with a record where its containers have cards.
func (n *Node) Pod(name string, containers ...Container) *v1.Pod {
	n.t.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: name}, Spec: v1.PodSpec{NodeName: n.Name}}
	record := contract.Allocation{Node: n.Name}
	for _, c := range containers {
		container := v1.Container{Name: c.Name, Image: "none", Resources: v1.ResourceRequirements{
			Limits: v1.ResourceList{v1.ResourceName(c.Resource): *resource.NewQuantity(c.Amount, resource.DecimalSI)},
		}}
		if c.Init {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
		} else {
			pod.Spec.Containers = append(pod.Spec.Containers, container)
		}
		if c.Cards != nil {
			record.Containers = append(record.Containers, contract.ContainerAllocation{Name: c.Name, Cards: c.Cards})
		}
	}
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []v1.Container{{Name: "plain", Image: "none"}}
	}
	if len(record.Containers) > 0 {
		text, err := contract.EncodeAllocation(record)
		if err != nil {
			n.t.Fatal(err)
		}
		pod.Annotations = map[string]string{Names.AllocationKey: text, Names.AssignedKey: "false"}
	}
	return n.Create(pod)
}

// Create makes a pod in the node's namespace.
func (n *Node) Create(pod *v1.Pod) *v1.Pod {
	n.t.Helper()
	out, err := Admin.CoreV1().Pods(n.Namespace).Create(n.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

// Run admits a pod and starts its containers in order.
func (n *Node) Run(pod *v1.Pod) {
	n.t.Helper()
	if err := n.Kubelet.Admit(pod); err != nil {
		n.t.Fatal(err)
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		n.StartContainer(pod, c.Name)
	}
}

// StartContainer starts a container as kubelet does: again and again while it is refused.
func (n *Node) StartContainer(pod *v1.Pod, container string) *kubelettest.RunOptions {
	n.t.Helper()
	var out *kubelettest.RunOptions
	n.Until("container "+container+" starts", func(context.Context) (err error) {
		out, err = n.Kubelet.Start(pod.UID, container)
		return err
	})
	return out
}

// Sees returns the cards that a container gets, as the engine resolves its tickets.
func (n *Node) Sees(pod *v1.Pod, container string) (cards, mib string) {
	n.t.Helper()
	o := n.StartContainer(pod, container)
	cache, err := cdi.NewCache(cdi.WithSpecDirs(n.CDIDir()), cdi.WithAutoRefresh(false))
	if err != nil {
		n.t.Fatal(err)
	}
	for _, name := range o.CDIDevices {
		d := cache.GetDevice(name)
		if d == nil {
			n.t.Fatalf("ticket %s cannot be resolved: %v", name, cache.GetErrors())
		}
		for _, env := range d.ContainerEdits.Env {
			if v, ok := strings.CutPrefix(env, contract.EnvVisibleDevices+"="); ok {
				cards = v
			}
			if v, ok := strings.CutPrefix(env, contract.EnvUsableMemory+"="); ok {
				mib = v
			}
		}
	}
	return cards, mib
}

// Remove deletes a pod from the API server and from kubelet.
func (n *Node) Remove(pod *v1.Pod) {
	n.t.Helper()
	n.Forget(pod)
	n.Kubelet.Remove(pod.UID)
}

// Forget deletes a pod from the API server alone, by force.
func (n *Node) Forget(pod *v1.Pod) {
	n.t.Helper()
	zero := int64(0)
	if err := Admin.CoreV1().Pods(n.Namespace).Delete(n.t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		n.t.Fatal(err)
	}
}

// Get reads a pod anew.
func (n *Node) Get(pod *v1.Pod) *v1.Pod {
	n.t.Helper()
	out, err := Admin.CoreV1().Pods(n.Namespace).Get(n.t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}
