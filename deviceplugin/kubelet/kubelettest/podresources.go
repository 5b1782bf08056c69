package kubelettest

import (
	"context"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Limits of pod-resources.
const (
	listsPerSecond = 100
	listsAtOnce    = 10
)

func limited() grpc.UnaryServerInterceptor {
	limiter := rate.NewLimiter(listsPerSecond, listsAtOnce)
	return func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if !limiter.Allow() {
			return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
		}
		return next(ctx, in)
	}
}

type lister struct {
	podresourcesapi.UnimplementedPodResourcesListerServer
	kubelet *Kubelet
}

// List returns the devices of active pods, without UIDs and without ordinary init containers.
func (l *lister) List(context.Context, *podresourcesapi.ListPodResourcesRequest) (*podresourcesapi.ListPodResourcesResponse, error) {
	k := l.kubelet
	k.freeGone()
	k.mu.Lock()
	defer k.mu.Unlock()
	out := &podresourcesapi.ListPodResourcesResponse{}
	for _, p := range k.pods {
		pod := &podresourcesapi.PodResources{Name: p.pod.Name, Namespace: p.pod.Namespace}
		add := func(c *v1.Container) {
			r := &podresourcesapi.ContainerResources{Name: c.Name}
			for resource, a := range k.held[p.pod.UID][c.Name] {
				for id := range a.set() {
					r.Devices = append(r.Devices, &podresourcesapi.ContainerDevices{ResourceName: resource, DeviceIds: []string{id}})
				}
			}
			pod.Containers = append(pod.Containers, r)
		}
		for i := range p.pod.Spec.InitContainers {
			if c := &p.pod.Spec.InitContainers[i]; restartable(c) {
				add(c)
			}
		}
		for i := range p.pod.Spec.Containers {
			add(&p.pod.Spec.Containers[i])
		}
		out.PodResources = append(out.PodResources, pod)
	}
	return out, nil
}
