package inspect_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/inspect"
)

func TestOldAnswers(t *testing.T) {
	t.Parallel()
	names := contract.Default()
	l := ledger.New(names)
	devices, err := contract.EncodeDevices(contract.NodeDevices{MemoryUnitMiB: 1024, SliceCount: 6, Devices: []contract.NodeDevice{
		{Minor: 0, UUID: "GCU-a", MemoryMiB: 600, NUMA: -1}, {Minor: 1, UUID: "GCU-b", MemoryMiB: 600, NUMA: -1},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, sharing := range map[string]string{"n1": "true", "private": "false"} {
		l.ObserveNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{names.SharingLabel: sharing}, Annotations: map[string]string{names.DevicesKey: devices},
		}})
	}
	record, err := contract.EncodeAllocation(contract.Allocation{Node: "n1", Containers: []contract.ContainerAllocation{
		{Name: "main", Cards: []contract.CardAllocation{{Minor: 0, UUID: "GCU-a", MemoryMiB: 200}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ml", Name: "p", UID: "u1", Annotations: map[string]string{names.AllocationKey: record},
			CreationTimestamp: metav1.NewTime(time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)),
		},
		Spec: v1.PodSpec{NodeName: "n1", Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{
			Limits: v1.ResourceList{"enflame.com/shared-gcu": resource.MustParse("2")},
		}}}},
		Status: v1.PodStatus{Phase: v1.PodRunning},
	}
	l.Observe(pod)
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := index.Add(pod); err != nil {
		t.Fatal(err)
	}
	handler := inspect.Handler(l, corelisters.NewPodLister(index), "v1.2.3")

	n1 := inspect.Node{
		Name: "n1", TotalGCU: 12, UsedGCU: 2, AvailableGCU: 10,
		Devices: map[string]inspect.Device{
			"0": {Virt: "Shared", TotalGCU: 6, UsedGCU: 2, AvailableGCU: 4, Pods: []inspect.Pod{{
				Name: "p", Namespace: "ml", UID: "u1", CreationTimestamp: "2026-11-30T08:00:00Z", UsedGCU: 2, Phase: "Running", Containers: []string{"main"},
			}}},
			"1": {Virt: "Shared", TotalGCU: 6, AvailableGCU: 6, Pods: []inspect.Pod{}},
		},
	}
	var all []inspect.Node
	if code := get(t, handler, "/gcushare-scheduler/inspect", &all); code != http.StatusOK {
		t.Errorf("code %d", code)
	}
	if diff := cmp.Diff([]inspect.Node{n1}, all); diff != "" {
		t.Errorf("all nodes (-want +got):\n%s", diff)
	}
	var one inspect.Node
	if code := get(t, handler, "/gcushare-scheduler/inspect/n1", &one); code != http.StatusOK {
		t.Errorf("code %d", code)
	}
	if diff := cmp.Diff(n1, one); diff != "" {
		t.Errorf("one node (-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{
		"/gcushare-scheduler/inspect/nobody":  "node nobody is not known",
		"/gcushare-scheduler/inspect/private": "node private does not share its cards (label enflame.com/gcushare=true)",
	} {
		var got inspect.Node
		if code := get(t, handler, path, &got); code != http.StatusNotFound || got.Error != want {
			t.Errorf("%s: code %d, error %q, want 404, %q", path, code, got.Error, want)
		}
	}
}

func get(t *testing.T, h http.Handler, path string, into any) int {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%s: %v in %s", path, err, w.Body)
	}
	return w.Code
}
