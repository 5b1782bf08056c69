package plugin_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/topscloud/topscloud/gcushare/plugin"
)

// TestNodePods reads pods from the informer, by name and by UID, and takes a recreated pod for another.
func TestNodePods(t *testing.T) {
	t.Parallel()
	pod := newPod("p", ask{"c", memory, 1})
	client := fake.NewClientset(pod)
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()
	pods, err := plugin.NewNodePods(client, nodeName, informer)
	if err != nil {
		t.Fatal(err)
	}
	if pods.Cached(pod.UID) != nil {
		t.Error("cached before the informer has it")
	}
	if err := informer.GetStore().Add(pod); err != nil {
		t.Fatal(err)
	}
	if got := pods.Cached(pod.UID); got == nil || got.Name != pod.Name {
		t.Errorf("Cached() = %v", got)
	}
	for _, name := range []string{"", pod.Name} {
		if got, err := pods.Read(t.Context(), pod.UID, pod.Namespace, name); err != nil || got.UID != pod.UID {
			t.Errorf("Read(name %q) = %v, %v", name, got, err)
		}
		if _, err := pods.Read(t.Context(), "uid-of-before", pod.Namespace, name); !apierrors.IsNotFound(err) {
			t.Errorf("Read(name %q) of another UID = %v, want not found", name, err)
		}
	}
	var got *v1.Pod
	if got, err = pods.Read(t.Context(), "", pod.Namespace, pod.Name); err != nil || got.UID != pod.UID {
		t.Errorf("Read by name only = %v, %v", got, err)
	}
}
