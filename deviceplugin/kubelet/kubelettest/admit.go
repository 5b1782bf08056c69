package kubelettest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/topscloud/topscloud/deviceplugin/kubelet/checkpoint"
)

// AdmissionError is why a pod became Failed for good.
type AdmissionError struct {
	Reason string // as in the pod's status
	Err    error
}

// Error says reason and cause.
func (e *AdmissionError) Error() string { return fmt.Sprintf("%s: %v", e.Reason, e.Err) }

// Unwrap returns the cause.
func (e *AdmissionError) Unwrap() error { return e.Err }

// Admit takes in a pod. An error means that the pod is Failed and gone from kubelet.
func (k *Kubelet) Admit(pod *v1.Pod) error {
	k.admitting.Lock()
	defer k.admitting.Unlock()
	p := &podState{pod: pod.DeepCopy(), running: sets.New[string]()}
	k.mu.Lock()
	k.pods = append(k.pods, p)
	k.mu.Unlock()
	if err := k.admitPod(p); err != nil {
		k.drop(pod.UID)
		return &AdmissionError{Reason: "UnexpectedAdmissionError", Err: err}
	}
	return nil
}

// Remove ends a pod. What it held is free once kubelet looks again.
func (k *Kubelet) Remove(pod types.UID) { k.drop(pod) }

func (k *Kubelet) drop(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = slices.DeleteFunc(k.pods, func(p *podState) bool { return p.pod.UID == uid })
}

func restartable(c *v1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
}

func (k *Kubelet) admitPod(p *podState) error {
	for i := range p.pod.Spec.InitContainers {
		c := &p.pod.Spec.InitContainers[i]
		if err := k.allocate(p, c, !restartable(c)); err != nil {
			return err
		}
	}
	for i := range p.pod.Spec.Containers {
		if err := k.allocate(p, &p.pod.Spec.Containers[i], false); err != nil {
			return err
		}
	}
	return nil
}

// allocate gives a container all it asks for. What lend says may be given again to the pod's later
// containers.
func (k *Kubelet) allocate(p *podState, c *v1.Container, lend bool) error {
	uid := p.pod.UID
	k.mu.Lock()
	for other := range k.reuse {
		if other != uid {
			delete(k.reuse, other)
		}
	}
	if k.reuse[uid] == nil {
		k.reuse[uid] = map[string]sets.Set[string]{}
	}
	k.mu.Unlock()

	freed, changed := false, false
	for name, quantity := range c.Resources.Limits {
		resource := string(name)
		if !k.managed(resource) {
			continue
		}
		if !freed {
			k.freeGone()
			freed = true
		}
		ids, err := k.choose(p, c.Name, resource, int(quantity.Value()))
		if err != nil {
			return err
		}
		if ids.Len() == 0 {
			continue
		}
		changed = true
		if err := k.ask(uid, c.Name, resource, ids); err != nil {
			return err
		}
	}
	if changed {
		if err := k.writeCheckpoint(); err != nil {
			return err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for resource, a := range k.held[uid][c.Name] {
		if lend {
			k.reuse[uid][resource] = k.reuse[uid][resource].Union(a.set())
		} else {
			k.reuse[uid][resource] = k.reuse[uid][resource].Difference(a.set())
		}
	}
	return nil
}

func (k *Kubelet) managed(resource string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, registered := k.healthy[resource]
	_, allocated := k.allocated[resource]
	return registered || allocated
}

// freeGone frees what pods hold that are gone, once all pods are known.
func (k *Kubelet) freeGone() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.ready {
		return
	}
	removed := false
	for uid := range k.held {
		if !slices.ContainsFunc(k.pods, func(p *podState) bool { return p.pod.UID == uid }) {
			delete(k.held, uid)
			removed = true
		}
	}
	if removed {
		k.allocated = k.heldLocked()
	}
}

// choose marks IDs for a container as allocated; none when it has its IDs already.
func (k *Kubelet) choose(p *podState, container, resource string, want int) (sets.Set[string], error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	has := sets.New[string]()
	if a := k.held[p.pod.UID][container][resource]; a != nil {
		has = a.set()
		if has.Len() != want {
			return nil, fmt.Errorf("container %s changed its request for %s from %d to %d", container, resource, has.Len(), want)
		}
	}
	if !k.ready && p.running.Has(container) {
		return nil, nil
	}
	healthy, registered := k.healthy[resource]
	switch {
	case !registered:
		return nil, fmt.Errorf("cannot allocate unregistered device %s", resource)
	case healthy.Len() == 0:
		return nil, fmt.Errorf("no healthy devices present; cannot allocate unhealthy devices %s", resource)
	case !healthy.IsSuperset(has):
		return nil, fmt.Errorf("previously allocated devices are no longer healthy; cannot allocate unhealthy devices %s", resource)
	case has.Len() > 0 || want == 0:
		return nil, nil
	}
	out := sets.New[string]()
	take := func(from sets.Set[string]) bool {
		if k.allocated[resource] == nil {
			k.allocated[resource] = sets.New[string]()
		}
		for id := range from { // in map order, as kubelet does
			if out.Len() == want {
				break
			}
			out.Insert(id)
			k.allocated[resource].Insert(id)
		}
		return out.Len() == want
	}
	if take(k.reuse[p.pod.UID][resource]) {
		return out, nil
	}
	free := healthy.Difference(k.allocated[resource])
	if free.Len() < want-out.Len() {
		return nil, fmt.Errorf("requested number of devices unavailable for %s. Requested: %d, Available: %d", resource, want-out.Len(), free.Len())
	}
	preferred, err := k.preferredLocked(resource, free.Union(out), out, want)
	if err != nil {
		return nil, err
	}
	if take(preferred.Intersection(free)) || take(free.Difference(out)) {
		return out, nil
	}
	return nil, fmt.Errorf("allocated %d of %s, want %d", out.Len(), resource, want)
}

// Prefers returns, sorted, which of the free devices of a resource its plugin would give to a container that asks
// for want of them now. Nothing is allocated: the question alone is put, as kubelet puts it in an admission.
func (k *Kubelet) Prefers(resource string, want int) ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	free := k.healthy[resource].Difference(k.heldLocked()[resource])
	out, err := k.preferredLocked(resource, free, nil, want)
	return sets.List(out), err
}

// preferredLocked asks the plugin, with the lock released meanwhile.
func (k *Kubelet) preferredLocked(resource string, available, include sets.Set[string], want int) (sets.Set[string], error) {
	e := k.endpoints[resource]
	if e == nil {
		return nil, fmt.Errorf("endpoint not found for a registered resource: %s", resource)
	}
	if e.options == nil || !e.options.GetPreferredAllocationAvailable {
		return nil, nil
	}
	if e.stopped {
		return nil, errStopped
	}
	k.mu.Unlock()
	answer, err := e.api.GetPreferredAllocation(context.Background(), &pluginapi.PreferredAllocationRequest{
		ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
			AvailableDeviceIDs: available.UnsortedList(), MustIncludeDeviceIDs: include.UnsortedList(), AllocationSize: int32(want),
		}},
	})
	k.mu.Lock()
	if err != nil {
		return nil, fmt.Errorf("GetPreferredAllocation: %w", err)
	}
	if len(answer.ContainerResponses) == 0 {
		return nil, nil
	}
	return sets.New(answer.ContainerResponses[0].DeviceIDs...), nil
}

// ask calls Allocate and keeps the answer.
func (k *Kubelet) ask(uid types.UID, container, resource string, ids sets.Set[string]) error {
	k.mu.Lock()
	e := k.endpoints[resource]
	stopped := e == nil || e.stopped
	k.mu.Unlock()
	err := errStopped
	var answer *pluginapi.AllocateResponse
	if !stopped {
		answer, err = e.api.Allocate(context.Background(), &pluginapi.AllocateRequest{
			ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids.UnsortedList()}},
		})
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.allocated = k.heldLocked()
		return err
	}
	if len(answer.ContainerResponses) == 0 {
		return fmt.Errorf("no container in the answer of %s", resource)
	}
	numa := checkpoint.DevicesPerNUMA{}
	for id := range ids {
		nodes := k.devices[resource][id].GetTopology().GetNodes()
		if len(nodes) == 0 {
			numa[-1] = append(numa[-1], id)
		}
		for _, n := range nodes {
			numa[n.ID] = append(numa[n.ID], id)
		}
	}
	k.putLocked(uid, container, resource, &allocation{ids: numa, response: answer.ContainerResponses[0]})
	return nil
}

func (k *Kubelet) putLocked(uid types.UID, container, resource string, a *allocation) {
	if k.held[uid] == nil {
		k.held[uid] = map[string]map[string]*allocation{}
	}
	if k.held[uid][container] == nil {
		k.held[uid][container] = map[string]*allocation{}
	}
	k.held[uid][container][resource] = a
}

// heldLocked sums what all pods hold, by resource.
func (k *Kubelet) heldLocked() map[string]sets.Set[string] {
	out := map[string]sets.Set[string]{}
	for _, containers := range k.held {
		for _, resources := range containers {
			for resource, a := range resources {
				out[resource] = out[resource].Union(a.set())
			}
		}
	}
	return out
}

// writeCheckpoint replaces the checkpoint, as kubelet does: a temporary file, synced, renamed.
func (k *Kubelet) writeCheckpoint() error {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	var entries []checkpoint.PodDevicesEntry
	for uid, containers := range k.held {
		for container, resources := range containers {
			for resource, a := range resources {
				answer, err := proto.Marshal(a.response)
				if err != nil {
					continue
				}
				entries = append(entries, checkpoint.PodDevicesEntry{
					PodUID: string(uid), ContainerName: container, ResourceName: resource, DeviceIDs: a.ids, AllocResp: answer,
				})
			}
		}
	}
	registered := map[string][]string{}
	for resource, ids := range k.healthy {
		registered[resource] = ids.UnsortedList()
	}
	text, err := checkpoint.Encode(entries, registered)
	k.mu.Unlock()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(k.PluginDir(), ".")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(text); err != nil {
		f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(k.PluginDir(), checkpoint.FileName))
}
