package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/deviceplugin/kubelet/checkpoint"
	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/eflib/source"
	"github.com/topscloud/topscloud/gcushare/plugin"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

const (
	unitMiB    = 1024
	sliceCount = contract.DefaultSliceCount
)

// agent is what runs on the node for a test.
type agent struct {
	stop func()
	// devices are the lists told to kubelet, for tests that change them.
	devices map[share.Kind]*kubelet.Devices
	arbiter *plugin.Arbiter
	// servers are ready when kubelet listens to them.
	servers []*kubelet.Server
	refused *refusals
}

func (a *agent) ready() error {
	for _, s := range a.servers {
		if err := s.Ready(); err != nil {
			return err
		}
	}
	return nil
}

// refusals are what the agent refused, in order.
type refusals struct {
	mu   sync.Mutex
	list []*plugin.Refusal
}

// startAgent serves the node's cards to kubelet until the test ends or stop is called. Everything a program would be
// told by flags is taken from machine: node name, host root, kubelet's folder, CDI folder, state folder.
func startAgent(t *testing.T) *agent {
	t.Helper()
	config, err := cluster.ConfigFor("gcu-sandbox-nodes")
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	cards, err := source.Open(source.Options{Source: source.Sysfs, HostRoot: machine.HostRoot()})
	if err != nil {
		t.Fatal(err)
	}
	devices, err := cards.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range devices {
		devices[i].Health = eflib.Health{State: eflib.Healthy} // sysfs alone does not tell
	}
	announce(t, client, devices)

	state := machine.Scratch()
	if err := os.MkdirAll(state, 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", machine.Name()).String()
	}))
	pods, err := plugin.NewNodePods(client, machine.Name(), factory.Core().V1().Pods().Informer())
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	list, err := kubelet.NewPodResources(machine.PodResourcesSocket())
	if err != nil {
		t.Fatal(err)
	}
	reader := checkpoint.NewReader(filepath.Join(machine.PluginDir(), checkpoint.FileName))
	a := &agent{devices: map[share.Kind]*kubelet.Devices{}, refused: &refusals{}}
	a.arbiter, err = plugin.Open(plugin.Options{
		Names: names, Node: machine.Name(), HostRoot: machine.HostRoot(),
		Machine: func() plugin.Machine {
			return plugin.Machine{UnitMiB: unitMiB, SliceCount: sliceCount, Devices: devices}
		},
		Pods:       pods,
		Identities: &kubelet.Identifier{Checkpoints: reader, Pods: list}, Checkpoints: reader,
		BookPath: filepath.Join(state, "book.json"), CDIDir: machine.CDIDir(),
		Refused: func(_ context.Context, r *plugin.Refusal) {
			a.refused.mu.Lock()
			defer a.refused.mu.Unlock()
			a.refused.list = append(a.refused.list, r)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.arbiter.Restore(ctx); err != nil {
		t.Errorf("restore: %v", err)
	}
	var wg sync.WaitGroup
	for kind, ids := range lists(devices) {
		a.devices[kind] = &kubelet.Devices{}
		a.devices[kind].Set(ids)
		p := a.arbiter.Plugin(kind)
		s, err := kubelet.New(kubelet.Options{
			Resource: p.Resource(), Dir: machine.PluginDir(), Prefix: "enflame", Instance: fmt.Sprintf("%d-%s", kind, rand.String(6)),
			Plugin: p, Devices: a.devices[kind],
		})
		if err != nil {
			t.Fatal(err)
		}
		a.servers = append(a.servers, s)
		wg.Go(func() {
			if err := s.Serve(ctx); err != nil {
				t.Errorf("serve %s: %v", p.Resource(), err)
			}
		})
	}
	var once sync.Once
	a.stop = func() {
		once.Do(func() {
			cancel()
			wg.Wait()
			factory.Shutdown()
			if err := errors.Join(a.arbiter.Close(), list.Close(), cards.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(a.stop)
	waitAllocatable(t, a)
	return a
}

// lists returns the IDs of each resource; none stands for a card in particular.
func lists(devices []eflib.Device) map[share.Kind][]kubelet.Device {
	out := map[share.Kind][]kubelet.Device{}
	for _, d := range devices {
		for kind, count := range map[share.Kind]int64{
			share.Whole: 1, share.Memory: share.Units(d.MemoryMiB, unitMiB), share.Slices: sliceCount,
		} {
			for range count {
				out[kind] = append(out[kind], kubelet.Device{ID: fmt.Sprintf("%s-%04d", d.UUID, len(out[kind])), Healthy: true, NUMA: -1})
			}
		}
	}
	return out
}

// announce writes what the scheduler reads of the node.
func announce(t *testing.T, client kubernetes.Interface, devices []eflib.Device) {
	t.Helper()
	text, err := contract.EncodeDevices(eflib.NodeDevices(devices, unitMiB, sliceCount))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{names.DevicesKey: text}, "labels": map[string]string{names.SharingLabel: "true"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().Patch(t.Context(), machine.Name(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitAllocatable waits until the node says that it has all that the agent offers.
func waitAllocatable(t *testing.T, a *agent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := poll(ctx, func(ctx context.Context) error {
		node, err := admin.CoreV1().Nodes().Get(ctx, machine.Name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		for kind, d := range a.devices {
			list, _ := d.Get()
			q := node.Status.Allocatable[v1.ResourceName(kind.Resource(names))]
			if q.Value() != int64(len(list)) {
				return fmt.Errorf("%s: %s allocatable, want %d", kind.Resource(names), q.String(), len(list))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
