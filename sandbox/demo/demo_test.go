package demo

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/topscloud/topscloud/internal/contract"
)

var names = contract.Default()

func annotate(t *testing.T, expect, cards string, held ...contract.CardAllocation) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{ExpectAnnotation: expect}},
		Spec:       corev1.PodSpec{NodeName: "n"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if cards != "" {
		p.Annotations[ExpectCardsAnnotation] = cards
	}
	if len(held) > 0 {
		text, err := contract.EncodeAllocation(contract.Allocation{Node: "n", Containers: []contract.ContainerAllocation{{Name: "main", Cards: held}}})
		if err != nil {
			t.Fatal(err)
		}
		p.Annotations[names.AllocationKey] = text
	}
	return p
}

func whole(minor int) contract.CardAllocation {
	return contract.CardAllocation{Minor: minor, UUID: "GCU-" + string(rune('A'+minor)), MemoryMiB: 1024, Whole: true}
}

// twoSwitches has cards 0 and 1 below one switch and card 2 below another.
func twoSwitches(t *testing.T) *corev1.Node {
	t.Helper()
	d := contract.NodeDevices{MemoryUnitMiB: 1024, SliceCount: 6}
	for i, bridge := range []string{"a", "a", "b"} {
		d.Devices = append(d.Devices, contract.NodeDevice{
			Minor: i, UUID: whole(i).UUID, MemoryMiB: 1024, NUMA: 0, Bridges: []string{bridge, "pci0000:00"},
		})
	}
	text, err := contract.EncodeDevices(d)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{names.DevicesKey: text}}}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	waiting := annotate(t, "pending", "")
	waiting.Spec.NodeName, waiting.Status.Phase = "", corev1.PodPending
	waiting.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no room"}}
	unexpected := waiting.DeepCopy()
	unexpected.Annotations[ExpectAnnotation] = "running"
	silent := waiting.DeepCopy()
	silent.Status.Conditions = nil
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string // part of the complaint
	}{
		"runs":                       {annotate(t, "running", ""), ""},
		"waits":                      {waiting, ""},
		"waits and should run":       {unexpected, "should run and is Pending  no room"},
		"waits without a reason":     {silent, "has none"},
		"runs and should wait":       {annotate(t, "pending", ""), "should wait and is on n"},
		"the cards it should have":   {annotate(t, "running", "2", whole(0), whole(2)), ""},
		"one card too few":           {annotate(t, "running", "2", whole(0)), "should hold 2 cards and holds 1"},
		"below one switch":           {annotate(t, "running", "2 same-switch", whole(0), whole(1)), ""},
		"below two switches":         {annotate(t, "running", "2 same-switch", whole(0), whole(2)), "one switch"},
		"an expectation with a typo": {annotate(t, "runing", ""), "want running or pending"},
		"a card number with a typo":  {annotate(t, "running", "two"), "want a number"},
		"no card wanted, none held":  {annotate(t, "running", "0"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := judge(c.pod, twoSwitches(t), names)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestCardsColumn(t *testing.T) {
	t.Parallel()
	for want, h := range map[string]held{
		"-":                              {},
		"0-3,6":                          {whole: []int{0, 1, 2, 3, 6}},
		"1: 8192 MiB":                    {shares: map[int][]int64{1: {8192}}},
		"2, 0: 10240+2048 MiB, 5: 1 MiB": {whole: []int{2}, shares: map[int][]int64{5: {1}, 0: {10240, 2048}}},
	} {
		if got := h.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
