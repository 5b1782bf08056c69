package agent

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	gcuplugin "github.com/topscloud/topscloud/gcushare/plugin"
)

// refused is a pod whose containers are refused.
type refused struct {
	since   time.Time
	pod     *v1.Pod
	evicted time.Time // the last try
}

// refused takes in a refusal: an event at the pod, which kubelet's own event only quotes, and the time since
// when.
func (a *Agent) refused(_ context.Context, r *gcuplugin.Refusal) {
	a.o.Metrics.refusals.WithLabelValues(string(r.Cause)).Inc()
	a.logger.Info("Container refused", "cause", r.Cause, "pod", r.Pod, "container", r.Container, "err", r.Err)
	if r.UID == "" {
		return
	}
	pod := a.pods.Cached(r.UID)
	if pod == nil {
		return
	}
	a.podEvent(pod, v1.EventTypeWarning, "GCURefused", refusalText(r))
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refusals[r.UID] == nil {
		a.refusals[r.UID] = &refused{since: time.Now()}
	}
	a.refusals[r.UID].pod = pod
}

// refusalText leaves the pod's name out, so that events of many pods are counted as one.
func refusalText(r *gcuplugin.Refusal) string {
	if r.Container == "" {
		return r.Err.Error()
	}
	return "container " + r.Container + ": " + r.Err.Error()
}

func (a *Agent) forgive(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.refusals, uid)
}

// evict sends away pods that were refused for long, so that they can go where there is room. A pod that
// nobody would make anew is left: its owner reads the event. So is one of a DaemonSet, which would come back
// here.
func (a *Agent) evict(ctx context.Context) {
	const tryAgain = 30 * time.Second
	now := time.Now()
	var due []*v1.Pod
	a.mu.Lock()
	for _, r := range a.refusals {
		if now.Sub(r.since) >= a.o.RefusedFor && now.Sub(r.evicted) >= tryAgain && comesBackElsewhere(r.pod) {
			r.evicted = now
			due = append(due, r.pod)
		}
	}
	a.mu.Unlock()
	for _, pod := range due {
		a.evictPod(ctx, pod)
	}
}

func (a *Agent) evictPod(ctx context.Context, pod *v1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	a.podEvent(pod, v1.EventTypeWarning, "GCUEvicted", "its containers were refused their cards for "+a.o.RefusedFor.String()+"; it is evicted so that it can go elsewhere")
	err := a.o.Client.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
	})
	if err != nil {
		a.logger.Error(err, "A refused pod cannot be evicted", "pod", klog.KObj(pod))
		return
	}
	a.o.Metrics.evictions.Inc()
}

func comesBackElsewhere(pod *v1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind != "DaemonSet" && owner.Kind != "Node"
}
