package kubelet_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/deviceplugin/kubelet/checkpoint"
	"github.com/topscloud/topscloud/deviceplugin/kubelet/kubelettest"
)

type fixed struct {
	file *checkpoint.Checkpoint
	pods []*podresourcesapi.PodResources
}

func (f fixed) Read() (*checkpoint.Checkpoint, error) {
	if f.file == nil {
		return nil, checkpoint.ErrChecksum
	}
	return f.file, nil
}

func (f fixed) List(context.Context, time.Time) ([]*podresourcesapi.PodResources, error) {
	return f.pods, nil
}

func entry(pod, container string, ids ...string) checkpoint.Entry {
	return checkpoint.Entry{PodUID: pod, Container: container, Resource: res, IDs: ids}
}

func TestHolders(t *testing.T) {
	t.Parallel()
	file := func(e ...checkpoint.Entry) *checkpoint.Checkpoint { return &checkpoint.Checkpoint{Entries: e} }
	container := func(name string, ids ...string) *podresourcesapi.ContainerResources {
		c := &podresourcesapi.ContainerResources{Name: name}
		for _, id := range ids {
			c.Devices = append(c.Devices, &podresourcesapi.ContainerDevices{ResourceName: res, DeviceIds: []string{id}})
		}
		return c
	}
	one := &podresourcesapi.PodResources{Namespace: "ns", Name: "p", Containers: []*podresourcesapi.ContainerResources{container("c", "2", "1"), container("other", "3")}}
	two := &podresourcesapi.PodResources{Namespace: "ns", Name: "q", Containers: []*podresourcesapi.ContainerResources{container("c", "1", "4")}}
	tests := map[string]struct {
		from fixed
		ids  []string
		want []kubelet.Holder
		err  error
	}{
		"one container":                    {fixed{file: file(entry("a", "c", "1", "2"), entry("b", "c", "3"))}, []string{"2", "1"}, []kubelet.Holder{{PodUID: "a", Container: "c"}}, nil},
		"init and app share the IDs":       {fixed{file: file(entry("a", "app", "1"), entry("a", "init", "1"))}, []string{"1"}, []kubelet.Holder{{PodUID: "a", Container: "app"}, {PodUID: "a", Container: "init"}}, nil},
		"an init container had more":       {fixed{file: file(entry("a", "app", "1"), entry("a", "init", "1", "2"))}, []string{"1"}, []kubelet.Holder{{PodUID: "a", Container: "app"}}, nil},
		"two pods, the same IDs":           {fixed{file: file(entry("a", "c", "1"), entry("b", "c", "1"))}, []string{"1"}, nil, kubelet.ErrAmbiguous},
		"two pods, some IDs":               {fixed{file: file(entry("a", "c", "1"), entry("b", "c", "1", "2"))}, []string{"1"}, nil, kubelet.ErrAmbiguous},
		"another resource":                 {fixed{file: file(checkpoint.Entry{PodUID: "a", Container: "c", Resource: "x/y", IDs: []string{"1"}})}, []string{"1"}, nil, kubelet.ErrNoHolder},
		"no IDs":                           {fixed{file: file()}, nil, nil, kubelet.ErrNoHolder},
		"only part of a container's IDs":   {fixed{file: file(entry("a", "c", "1", "2"))}, []string{"1"}, nil, kubelet.ErrNoHolder},
		"no checkpoint":                    {fixed{pods: []*podresourcesapi.PodResources{one}}, []string{"1", "2"}, []kubelet.Holder{{Namespace: "ns", Name: "p", Container: "c"}}, nil},
		"no checkpoint, two pods":          {fixed{pods: []*podresourcesapi.PodResources{one, two}}, []string{"1", "2"}, nil, kubelet.ErrAmbiguous},
		"not in the checkpoint":            {fixed{file: file(), pods: []*podresourcesapi.PodResources{one}}, []string{"3"}, []kubelet.Holder{{Namespace: "ns", Name: "p", Container: "other"}}, nil},
		"in neither":                       {fixed{file: file(), pods: []*podresourcesapi.PodResources{one}}, []string{"9"}, nil, kubelet.ErrNoHolder},
		"ambiguity is not asked elsewhere": {fixed{file: file(entry("a", "c", "3"), entry("b", "c", "3")), pods: []*podresourcesapi.PodResources{one}}, []string{"3"}, nil, kubelet.ErrAmbiguous},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := &kubelet.Identifier{Checkpoints: tt.from, Pods: tt.from}
			got, err := i.Holders(t.Context(), res, tt.ids)
			if !errors.Is(err, tt.err) {
				t.Fatalf("Holders() = %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("holders (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHoldersOfKubelet asks both sources of an imitated kubelet: they agree, and the init container is
// in the checkpoint only.
func TestHoldersOfKubelet(t *testing.T) {
	t.Parallel()
	k := kubelettest.New(t, kubelettest.Dir(t))
	d := &kubelet.Devices{}
	d.Set(devices(16, true))
	serve(t, options(k, "a", &plugin{}, d))
	allocatable(t, k, 16)
	p := pod("p", map[string]int64{"a": 2, "b": 2})
	p.Spec.InitContainers = []v1.Container{p.Spec.Containers[0]}
	p.Spec.InitContainers[0].Name = "init"
	if err := k.Admit(p); err != nil {
		t.Fatal(err)
	}
	api, err := kubelet.NewPodResources(k.PodResourcesSocket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { api.Close() })
	var sources sync.Map
	i := &kubelet.Identifier{
		Checkpoints: checkpoint.NewReader(k.CheckpointPath()), Pods: api,
		Observe: func(s kubelet.Source) { sources.Store(s, true) },
	}
	ids := k.Holds(p.UID, "a", res)
	if diff := cmp.Diff(ids, k.Holds(p.UID, "init", res)); diff != "" {
		t.Fatalf("the app container has the init container's IDs (-a +init):\n%s", diff)
	}
	got, err := i.Holders(t.Context(), res, ids)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Container != "a" || got[1].Container != "init" || got[0].PodUID != p.UID || len(got[0].CDIDevices) != 1 {
		t.Errorf("holders %+v", got)
	}
	if err := os.WriteFile(k.CheckpointPath(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err = i.Holders(t.Context(), res, k.Holds(p.UID, "b", res))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]kubelet.Holder{{Namespace: "default", Name: "p", Container: "b"}}, got); diff != "" {
		t.Errorf("holders (-want +got):\n%s", diff)
	}
	for _, s := range []kubelet.Source{kubelet.FromCheckpoint, kubelet.FromPodResources} {
		if _, ok := sources.Load(s); !ok {
			t.Errorf("source %d was not told", s)
		}
	}
}

// TestListIsShared: two hundred who ask at once stay below what kubelet allows, and those past it wait.
func TestListIsShared(t *testing.T) {
	t.Parallel()
	k := kubelettest.New(t, kubelettest.Dir(t))
	api, err := kubelet.NewPodResources(k.PodResourcesSocket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { api.Close() })
	var wg sync.WaitGroup
	errs := make(chan error, 200)
	for range 200 {
		wg.Go(func() {
			_, err := api.List(t.Context(), time.Now())
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 30 { // more than the burst, each of them new
		if _, err := api.List(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	k.Down()
	if _, err := api.List(within(t, time.Second), time.Now()); err == nil {
		t.Error("a kubelet that is away answered")
	}
	if err := k.Up(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it answers again", func() bool {
		_, err := api.List(t.Context(), time.Now())
		return err == nil
	})
}

func BenchmarkHolders(b *testing.B) {
	var entries []checkpoint.PodDevicesEntry
	var ids []string
	for p := range 110 {
		ids = nil
		for i := range 40 {
			ids = append(ids, fmt.Sprintf("u%05d", p*40+i))
		}
		entries = append(entries, checkpoint.PodDevicesEntry{
			PodUID: fmt.Sprintf("uid-%d", p), ContainerName: "c", ResourceName: res, DeviceIDs: checkpoint.DevicesPerNUMA{-1: ids},
		})
	}
	path := b.TempDir() + "/" + checkpoint.FileName
	text, err := checkpoint.Encode(entries, nil)
	if err != nil {
		b.Fatal(err)
	}
	for _, cold := range []bool{false, true} {
		b.Run(fmt.Sprintf("new_file=%v", cold), func(b *testing.B) {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				b.Fatal(err)
			}
			reader := checkpoint.NewReader(path)
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if cold {
					reader = checkpoint.NewReader(path)
				}
				i := kubelet.Identifier{Checkpoints: reader}
				if _, err := i.Holders(b.Context(), res, ids); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
