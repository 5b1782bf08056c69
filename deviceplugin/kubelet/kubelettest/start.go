package kubelettest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// RunOptions is what kubelet hands to the container engine.
type RunOptions struct {
	Envs        map[string]string
	Annotations map[string]string
	CDIDevices  []string // sorted
	Devices     []*pluginapi.DeviceSpec
	Mounts      []*pluginapi.Mount
}

// Start makes a container ready to be created and takes it for running. After an error it is not: kubelet
// would call Start again.
func (k *Kubelet) Start(pod types.UID, container string) (*RunOptions, error) {
	p, c := k.lookUp(pod, container)
	if c == nil {
		return nil, fmt.Errorf("no container %s in an active pod %s", container, pod)
	}
	again := false
	for name, quantity := range c.Resources.Limits {
		resource := string(name)
		if !k.managed(resource) || quantity.Value() == 0 {
			continue
		}
		if err := k.preStart(pod, container, resource); err != nil {
			return nil, err
		}
		if k.Holds(pod, container, resource) == nil {
			again = true
		}
	}
	if again {
		k.admitting.Lock()
		err := k.allocate(p, c, false)
		k.admitting.Unlock()
		if err != nil {
			return nil, err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p.running.Insert(container)
	return k.optionsLocked(pod, container), nil
}

// Exit ends a container; its pod stays.
func (k *Kubelet) Exit(pod types.UID, container string) {
	if p, _ := k.lookUp(pod, container); p != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		p.running.Delete(container)
	}
}

// Active says whether kubelet still has a pod.
func (k *Kubelet) Active(pod types.UID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.pods, func(p *podState) bool { return p.pod.UID == pod })
}

func (k *Kubelet) lookUp(pod types.UID, container string) (*podState, *v1.Container) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		if p.pod.UID != pod {
			continue
		}
		for _, list := range [][]v1.Container{p.pod.Spec.InitContainers, p.pod.Spec.Containers} {
			for i := range list {
				if list[i].Name == container {
					return p, &list[i]
				}
			}
		}
	}
	return nil, nil
}

func (k *Kubelet) preStart(pod types.UID, container, resource string) error {
	k.mu.Lock()
	e := k.endpoints[resource]
	var stopped bool
	if e != nil {
		stopped = e.stopped
	}
	a := k.held[pod][container][resource]
	k.mu.Unlock()
	switch {
	case e == nil:
		return fmt.Errorf("endpoint not found for a registered resource: %s", resource)
	case e.options == nil || !e.options.PreStartRequired:
		return nil
	case a == nil:
		return fmt.Errorf("no devices found allocated for pod %s, container %s, resource %s", pod, container, resource)
	case stopped:
		return errStopped
	}
	ctx, cancel := context.WithTimeout(context.Background(), pluginapi.KubeletPreStartContainerRPCTimeoutInSecs*time.Second)
	defer cancel()
	if _, err := e.api.PreStartContainer(ctx, &pluginapi.PreStartContainerRequest{DevicesIds: a.set().UnsortedList()}); err != nil {
		return fmt.Errorf("device plugin PreStartContainer rpc failed with err: %w", err)
	}
	return nil
}

func (k *Kubelet) optionsLocked(pod types.UID, container string) *RunOptions {
	out := &RunOptions{Envs: map[string]string{}, Annotations: map[string]string{}}
	for _, a := range k.held[pod][container] {
		maps.Copy(out.Envs, a.response.Envs)
		maps.Copy(out.Annotations, a.response.Annotations)
		out.Devices = append(out.Devices, a.response.Devices...)
		out.Mounts = append(out.Mounts, a.response.Mounts...)
		for _, d := range a.response.CdiDevices {
			out.CDIDevices = append(out.CDIDevices, d.Name)
		}
	}
	slices.Sort(out.CDIDevices)
	out.CDIDevices = slices.Compact(out.CDIDevices)
	return out
}
