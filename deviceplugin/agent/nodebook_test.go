package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// A holding is what a container may still use: one that is done with its card is not told, however long kubelet
// and the book remember it.
func TestHoldings(t *testing.T) {
	t.Parallel()
	names := contract.Default()
	always := v1.ContainerRestartPolicyAlways
	done := func(code int32) v1.ContainerState {
		return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code}}
	}
	type pod struct {
		policy     v1.RestartPolicy
		phase      v1.PodPhase
		init, side v1.ContainerState
		main       v1.ContainerState
	}
	tests := map[string]struct {
		pod  *pod
		want []string
	}{
		"all run":                            {pod: &pod{}, want: []string{"init", "main", "side"}},
		"the pod is not there":               {},
		"the pod has succeeded":              {pod: &pod{phase: v1.PodSucceeded}},
		"the init container is done":         {pod: &pod{init: done(0)}, want: []string{"main", "side"}},
		"the init container failed":          {pod: &pod{init: done(1)}, want: []string{"init", "main", "side"}},
		"the init container failed for good": {pod: &pod{init: done(1), policy: v1.RestartPolicyNever}, want: []string{"main", "side"}},
		"a sidecar starts again":             {pod: &pod{side: done(0), policy: v1.RestartPolicyNever}, want: []string{"init", "main", "side"}},
		"a container starts again":           {pod: &pod{main: done(0)}, want: []string{"init", "main", "side"}},
		"a container is done":                {pod: &pod{main: done(0), policy: v1.RestartPolicyOnFailure}, want: []string{"init", "side"}},
		"a container starts after failing":   {pod: &pod{main: done(1), policy: v1.RestartPolicyOnFailure}, want: []string{"init", "main", "side"}},
		"a container failed for good":        {pod: &pod{main: done(1), policy: v1.RestartPolicyNever}, want: []string{"init", "side"}},
	}
	card := []contract.CardAllocation{{Minor: 3, UUID: "GCU-3", MemoryMiB: 4096}}
	book := contract.Book{Tickets: []contract.BookTicket{
		{Name: "t1", Resource: names.ResourceMemory, PodUID: "u1", Container: "main", Cards: card},
		{Name: "t2", Resource: names.ResourceMemory, PodUID: "u1", Container: "init", Cards: card},
		{Name: "t3", Resource: names.ResourceMemory, PodUID: "u1", Container: "side", Cards: card},
		{Name: "t4", Resource: names.ResourceMemory, PodUID: "u1", Container: "main", Cards: card}, // a second one
		{Name: "t5", Resource: names.ResourceMemory},                                               // not started yet
		{Name: "t6", Resource: "acme.com/npu", PodUID: "u1", Container: "main", Cards: card},
	}}
	cards := []health.Card{{Minor: 3, UUID: "GCU-3", Present: true, Device: eflib.Device{
		Minor: 3, UUID: "GCU-3", PCIAddress: topology.Address{Bus: 0x11},
	}}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := holdings(names, book, placeIn(cards), func(types.UID) *v1.Pod {
				if tt.pod == nil {
					return nil
				}
				p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u1"}}
				p.Spec.RestartPolicy = tt.pod.policy
				if p.Spec.RestartPolicy == "" {
					p.Spec.RestartPolicy = v1.RestartPolicyAlways
				}
				p.Spec.InitContainers = []v1.Container{{Name: "init"}, {Name: "side", RestartPolicy: &always}}
				p.Spec.Containers = []v1.Container{{Name: "main"}}
				p.Status.Phase = tt.pod.phase
				p.Status.InitContainerStatuses = []v1.ContainerStatus{{Name: "init", State: tt.pod.init}, {Name: "side", State: tt.pod.side}}
				p.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "main", State: tt.pod.main}}
				return p
			})
			var want []nodebook.Holding
			for _, c := range tt.want {
				want = append(want, nodebook.Holding{
					Minor: 3, UUID: "GCU-3", PCIBusID: "0000:11:00.0", PodUID: "u1", Namespace: "ns", Pod: "p", Container: c,
					Resource: names.ResourceMemory, Kind: nodebook.Memory, MemoryMiB: 4096,
				})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("holdings (-want +got):\n%s", diff)
			}
		})
	}
}

// Where a card is, is told of the card that a holding names, and of no other that may be there by now.
func TestPlaceIn(t *testing.T) {
	t.Parallel()
	at := topology.Address{Bus: 0x11}
	card := func(uuid, seen string, present bool) health.Card {
		return health.Card{Minor: 3, UUID: uuid, Present: present, Device: eflib.Device{Minor: 3, UUID: seen, PCIAddress: at}}
	}
	tests := map[string]struct {
		cards []health.Card
		uuid  string
		want  string
	}{
		"it is there":                          {[]health.Card{card("GCU-A", "GCU-A", true)}, "GCU-A", at.String()},
		"a record without the prefix":          {[]health.Card{card("GCU-A", "GCU-A", true)}, "A", at.String()},
		"it is seen by sysfs":                  {[]health.Card{card("GCU-PCI-1", "GCU-PCI-1", true)}, "GCU-PCI-1", at.String()},
		"it is gone":                           {[]health.Card{card("GCU-A", "GCU-A", false)}, "GCU-A", ""},
		"it is gone, another has its place":    {[]health.Card{card("GCU-A", "GCU-A", false), card("GCU-B", "GCU-B", true)}, "GCU-A", ""},
		"what is there does not say who it is": {[]health.Card{card("GCU-A", "", true)}, "GCU-A", ""},
		"it has another minor":                 {[]health.Card{{Minor: 4, UUID: "GCU-A", Present: true, Device: eflib.Device{Minor: 4, UUID: "GCU-A", PCIAddress: at}}}, "GCU-A", ""},
		"nothing was seen":                     {nil, "GCU-A", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := placeIn(tt.cards)(3, tt.uuid); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
