package simnode

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// SeesAnnotation is written to a pod whose containers have cards, where nodes run the real agent: a JSON
// object, per container what the engine would pass it. It is found as an engine finds it, by the CDI names in
// kubelet's answer, and knows nothing of the pod's record.
const SeesAnnotation = "gcu.sandbox/sees"

// Seen is what a container sees: the values of its environment.
type Seen struct {
	Cards     string `json:"cards"`
	MemoryMiB string `json:"memoryMiB"`
}

// startContainers does what kubelet does before the containers run that a new status says run: it asks the
// agent, hands the engine what it got, and notes what the container sees. It returns the pod as it is then,
// nil when a container was refused.
func (n *node) startContainers(ctx context.Context, p *corev1.Pod, status *corev1.PodStatus) (*corev1.Pod, error) {
	if n.real == nil || status == nil || !share.Asks(n.names, p) {
		return p, nil
	}
	if !n.real.kubelet.Active(p.UID) {
		// A pod of an earlier run of this sandbox: kubelet has to take it in first.
		if err := n.real.kubelet.Admit(p); err != nil {
			return nil, err
		}
	}
	changed := false
	for _, name := range newlyRunning(p.Status, *status) {
		seen, err := n.real.start(p, name, n.names)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("A container was refused", "pod", klog.KObj(p), "container", name, "err", err)
			return nil, nil
		}
		if seen == (Seen{}) {
			continue
		}
		if n.real.seen[p.UID] == nil {
			n.real.seen[p.UID] = map[string]Seen{}
		}
		n.real.seen[p.UID][name] = seen
		changed = true
	}
	if err := n.real.work.set(p.UID, status, n.real.seen[p.UID]); err != nil {
		return nil, err
	}
	if !changed {
		return p, nil
	}
	text, err := json.Marshal(n.real.seen[p.UID])
	if err != nil {
		return nil, err
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, p.UID, SeesAnnotation, text)
	// The status is written next, upon the version that comes of this.
	return n.manager.client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
}

// newlyRunning returns the containers that run in the new status and did not in the old one.
func newlyRunning(was, is corev1.PodStatus) []string {
	var out []string
	before := slices.Concat(was.InitContainerStatuses, was.ContainerStatuses)
	for _, cs := range slices.Concat(is.InitContainerStatuses, is.ContainerStatuses) {
		ran := slices.ContainsFunc(before, func(b corev1.ContainerStatus) bool { return b.Name == cs.Name && b.State.Running != nil })
		if cs.State.Running != nil && !ran {
			out = append(out, cs.Name)
		}
	}
	return out
}

// start asks kubelet for a container and resolves its CDI names as an engine would.
func (r *realHost) start(p *corev1.Pod, container string, names *contract.Names) (Seen, error) {
	o, err := r.kubelet.Start(p.UID, container)
	if err != nil {
		return Seen{}, err
	}
	if len(o.CDIDevices) == 0 {
		return Seen{}, nil
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(filepath.Join(r.root, "cdi")), cdi.WithAutoRefresh(false))
	if err != nil {
		return Seen{}, err
	}
	var s Seen
	for _, name := range o.CDIDevices {
		d := cache.GetDevice(name)
		if d == nil {
			return Seen{}, fmt.Errorf("unresolvable CDI devices %s", name)
		}
		for _, env := range d.ContainerEdits.Env {
			if v, ok := strings.CutPrefix(env, contract.EnvVisibleDevices+"="); ok {
				s.Cards = v
			}
			if v, ok := strings.CutPrefix(env, contract.EnvUsableMemory+"="); ok {
				s.MemoryMiB = v
			}
		}
	}
	return s, nil
}
