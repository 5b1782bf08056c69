package simnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/sandbox/simnode/fault"
)

// node is one simulated node. Only the worker that serves it touches admitted and restartSeen.
type node struct {
	Machine
	manager *Manager
	names   *contract.Names
	index   int
	// admitted holds the pods kubelet has taken since it started; the informer may be behind.
	admitted map[types.UID]bool
	// restartSeen is the version of the Node whose wish to restart was carried out.
	restartSeen string
	// real is what runs on the node and the kubelet it talks to; nil where the node writes what it would.
	real *realHost
	// labelled is closed when feature discovery has labelled the node.
	labelled chan struct{}
	onLabels sync.Once
}

func (n *node) address() string { return fmt.Sprintf("198.19.%d.%d", n.index/250, n.index%250+1) }

// register creates the Node object or brings an existing one up to date.
func (n *node) register(ctx context.Context) error {
	devices, err := contract.EncodeDevices(n.Devices)
	if err != nil {
		return err
	}
	cards := newNodeCards(n.Devices, n.names, true, nil)
	offered := n.resources(cards.total())
	if n.manager.options.Client != nil {
		devices, offered = "", n.resources(units{}) // the agent will tell
	}
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, Labels: n.labels(time.Now()),
			Annotations: map[string]string{n.names.DevicesKey: devices},
		},
		Status: corev1.NodeStatus{
			Capacity:    offered,
			Allocatable: offered,
			Addresses:   []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.address()}, {Type: corev1.NodeHostName, Address: n.Name}},
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: "amd64", OperatingSystem: "linux", KubeletVersion: "v1.37.2", OSImage: "gcu-sandbox",
				KernelVersion: "simulated", ContainerRuntimeVersion: "simulated://1", MachineID: n.Name, SystemUUID: n.Name, BootID: n.Name,
			},
			Conditions: readyConditions(time.Now()),
		},
	}
	if devices == "" {
		want.Annotations = nil
	}
	nodes := n.manager.client.CoreV1().Nodes()
	if err := n.renewLease(ctx, time.Now()); err != nil {
		return err
	}
	_, err = nodes.Create(ctx, want, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// The labels an administrator has changed stay: discovery writes them when a node is new.
	return n.writeReady(ctx, time.Now())
}

// resources returns the host's resources and the given GCU units.
func (n *node) resources(u units) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:                          *resource.NewQuantity(n.CPUs, resource.DecimalSI),
		corev1.ResourceMemory:                       *resource.NewQuantity(n.MemoryGiB<<30, resource.BinarySI),
		corev1.ResourceEphemeralStorage:             *resource.NewQuantity(1<<40, resource.BinarySI),
		corev1.ResourcePods:                         *resource.NewQuantity(250, resource.DecimalSI),
		corev1.ResourceName(n.names.ResourceWhole):  *resource.NewQuantity(u.whole, resource.DecimalSI),
		corev1.ResourceName(n.names.ResourceMemory): *resource.NewQuantity(u.memory, resource.DecimalSI),
		corev1.ResourceName(n.names.ResourceSlice):  *resource.NewQuantity(u.slices, resource.DecimalSI),
	}
}

// sync brings the node's pods and its report one step forward. It returns when to come back even
// without an event.
func (n *node) sync(ctx context.Context) (time.Duration, error) {
	obj, err := n.manager.nodeLister.Get(n.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil // not seen yet, or deleted: kubelet does not register again by itself either
	}
	if err != nil {
		return 0, err
	}
	if n.real != nil {
		if labelled(obj, n.names) {
			n.onLabels.Do(func() { close(n.labelled) })
		}
		select {
		case <-n.labelled:
		default:
			return 0, nil // a node without its labels offers nothing, or pods would go to it by what it seems to be
		}
	}
	faults, err := fault.Parse(obj.Annotations[FaultAnnotation])
	if err != nil {
		faults = fault.Set{} // a typo must not stop the node
	}
	if faults.Stop {
		n.admitted = nil
		if n.real != nil {
			n.real.kubelet.Down()
			n.real.down = true
		}
		return 0, nil
	}
	if n.real != nil {
		if ok, err := n.real.up(faults, n.Devices.Devices); !ok || err != nil {
			return again, err
		}
	}
	devices := faults.Apply(n.Devices)
	all, err := n.manager.podsOf(n.Name)
	if err != nil {
		return 0, err
	}
	if faults.Restart || faults.Reboot {
		if n.restartSeen == obj.ResourceVersion {
			return 0, nil // done: the informer is behind
		}
		if n.real != nil {
			if err := n.real.restart(faults.Reboot); err != nil {
				return 0, err
			}
		}
		if err := n.restart(ctx, all, devices, faults); err != nil {
			return 0, err
		}
		n.restartSeen = obj.ResourceVersion
		return 0, nil
	}
	live := slices.DeleteFunc(slices.Clone(all), finished)
	if err := n.report(ctx, obj, devices, live); err != nil {
		return 0, err
	}
	after, err := n.syncPods(ctx, obj, devices, all)
	if n.real != nil && (after == 0 || after > again) {
		after = again // kubelet's lists change without an event of the API
	}
	return after, err
}

// syncPods serves the pods in the order in which kubelet would: those it has taken, then by age.
func (n *node) syncPods(ctx context.Context, obj *corev1.Node, devices contract.NodeDevices, pods []*corev1.Pod) (time.Duration, error) {
	if n.admitted == nil {
		n.admitted = map[types.UID]bool{}
	}
	seen := map[types.UID]bool{}
	var taken, fresh []*corev1.Pod
	for _, p := range pods {
		seen[p.UID] = true
		switch {
		case finished(p):
		case p.Status.StartTime != nil || n.admitted[p.UID]:
			n.admitted[p.UID] = true
			taken = append(taken, p)
		default:
			fresh = append(fresh, p)
		}
	}
	n.dropGone(pods)
	maps.DeleteFunc(n.admitted, func(uid types.UID, _ bool) bool { return !seen[uid] })
	slices.SortFunc(fresh, byAge)

	var errs []error
	var wake time.Duration
	for _, p := range fresh {
		if p.DeletionTimestamp != nil {
			continue // never started: the loop below removes it
		}
		cards := newNodeCards(devices, n.names, n.sharing(obj), taken)
		status := start(p, address{n.address(), n.manager.nextAddress()}, n.manager.options.Now())
		if why := n.admit(p, obj, cards, taken); why != nil {
			status = refused(p, why, n.manager.options.Now())
		} else {
			n.admitted[p.UID] = true
			taken = append(taken, p)
		}
		errs = append(errs, n.writeStatus(ctx, p, status))
	}
	for _, p := range pods {
		if p.DeletionTimestamp == nil && p.Status.StartTime == nil {
			continue // just admitted: its event brings us back
		}
		s := next(p, n.manager.options.Now())
		current, err := n.startContainers(ctx, p, s.status)
		if current == nil || err != nil {
			errs = append(errs, err)
			continue // kubelet tries again
		}
		errs = append(errs, n.do(ctx, current, s))
		if s.after > 0 && (wake == 0 || s.after < wake) {
			wake = s.after
		}
	}
	return wake, errors.Join(errs...)
}

// do carries out a step.
func (n *node) do(ctx context.Context, p *corev1.Pod, s step) error {
	if s.status != nil {
		if err := n.writeStatus(ctx, p, s.status); err != nil {
			return err
		}
	}
	if !s.remove {
		return nil
	}
	zero := int64(0)
	err := n.manager.client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &p.UID},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// writeStatus replaces the pod's status; a conflict means that the informer is behind.
func (n *node) writeStatus(ctx context.Context, p *corev1.Pod, status *corev1.PodStatus) error {
	p = p.DeepCopy()
	p.Status = *status
	_, err := n.manager.client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
	return err
}

// restart plays a restart of kubelet, or of the machine, and then takes the word out of the fault.
func (n *node) restart(ctx context.Context, pods []*corev1.Pod, devices contract.NodeDevices, f fault.Set) error {
	n.admitted = nil
	now := n.manager.options.Now()
	var errs []error
	for _, p := range pods {
		if finished(p) || p.Status.StartTime == nil || p.DeletionTimestamp != nil {
			continue
		}
		if why := n.readmit(p, devices, f.Reboot); why != nil {
			errs = append(errs, n.writeStatus(ctx, p, refused(p, why, now)))
		} else if f.Reboot {
			errs = append(errs, n.writeStatus(ctx, p, restarted(p, now)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	f.Restart, f.Reboot = false, false
	return n.manager.SetFault(ctx, n.Name, f.String())
}

func (n *node) sharing(obj *corev1.Node) bool { return obj.Labels[n.names.SharingLabel] == "true" }

// report writes the cards and the allocatable amounts, if they differ from what the Node says.
func (n *node) report(ctx context.Context, obj *corev1.Node, devices contract.NodeDevices, live []*corev1.Pod) error {
	nodes := n.manager.client.CoreV1().Nodes()
	text, err := contract.EncodeDevices(devices)
	if err != nil {
		return err
	}
	if n.real == nil && obj.Annotations[n.names.DevicesKey] != text {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{n.names.DevicesKey: text}}})
		if err != nil {
			return err
		}
		if _, err := nodes.Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	cards := newNodeCards(devices, n.names, n.sharing(obj), live)
	capacity := n.resources(newNodeCards(devices, n.names, true, nil).total())
	alloc := n.resources(allocatable(cards.free(), live, n.names))
	if n.real != nil {
		capacity, alloc = n.resources(n.real.capacity(n.names)), n.resources(n.real.allocatable(n.names))
	}
	if equal(obj.Status.Capacity, capacity) && equal(obj.Status.Allocatable, alloc) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"capacity": capacity, "allocatable": alloc}})
	if err != nil {
		return err
	}
	_, err = nodes.Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func equal(a, b corev1.ResourceList) bool {
	return reflect.DeepEqual(amounts(a), amounts(b))
}

func amounts(l corev1.ResourceList) map[corev1.ResourceName]int64 {
	out := make(map[corev1.ResourceName]int64, len(l))
	for name, q := range l {
		out[name] = q.MilliValue()
	}
	return out
}
