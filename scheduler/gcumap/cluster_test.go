package gcumap_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/gcumap"
	"github.com/topscloud/topscloud/scheduler/survey"
	"github.com/topscloud/topscloud/scheduler/surveytest"
)

var (
	names = surveytest.Names
	now   = surveytest.Now
)

func initializing(pod *v1.Pod) *v1.Pod {
	pod.Status.Conditions[1].Status = v1.ConditionFalse
	return pod
}

func overdue(pod *v1.Pod) *v1.Pod {
	pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-2 * time.Minute))
	return pod
}

func build(s *survey.Survey) *gcumap.Map {
	return gcumap.Build(s, gcumap.Options{RecordTimeout: time.Minute, Now: now})
}

// scenes are clusters by name, one golden file each.
func scenes() map[string]*survey.Survey {
	return map[string]*survey.Survey{
		"example":      example(),
		"machines":     machines(),
		"holders":      manyHolders(),
		"closed":       closed(),
		"odd":          odd(),
		"tenant":       tenant(),
		"nodes-unseen": nodesUnseen(),
		"no-gcu":       survey.Of(names, []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "web-2"}}}, nil),
		"empty":        survey.Of(names, nil, nil),
	}
}

// example is the picture of the README.
func example() *survey.Survey {
	a := surveytest.NewHost("s60x8", "gcu-node-1")
	a.Machine.SetHealth(7, "HBM ECC errors")
	a.Cordon = []contract.CordonedCard{{Minor: 6, Reason: "fan to be replaced"}}
	b := surveytest.NewHost("t20x4", "gcu-node-2")
	return survey.Of(names,
		[]*v1.Node{a.Object(), b.Object(), {ObjectMeta: metav1.ObjectMeta{Name: "web-1"}}},
		[]*v1.Pod{
			a.Pod("research", "pretrain-0", surveytest.Whole("trainer", 0, 1)),
			a.Pod("serving", "chat-6f9d7c5b8-x2x9z", surveytest.Memory("server", 20, 4)),
			a.Pod("serving", "embed-7c44f8d9b-q8w4k", surveytest.Memory("server", 8, 4)),
			a.Pod("notebooks", "jupyter-anna-0", surveytest.Slices("lab", 2, 5)),
			initializing(a.Pod("serving", "rerank-5b6d4f7c9-k8s2p", surveytest.Initial(surveytest.Memory("fetch", 4, 5)), surveytest.Memory("server", 12, 5))),
			b.Pod("batch", "nightly-eval-28561-dr7vz", surveytest.Whole("eval", 0)),
			b.Pod("serving", "ocr-7d5c9b4f6-tm4xl", surveytest.Memory("detect", 8, 2), surveytest.Memory("read", 16, 2)),
		})
}

func machines() *survey.Survey {
	var nodes []*v1.Node
	var pods []*v1.Pod
	for _, preset := range sim.Presets() {
		h := surveytest.NewHost(preset, preset)
		nodes = append(nodes, h.Object())
		pods = append(pods, h.Pod("ml", "on-"+preset, surveytest.Whole("main", 0)), h.Pod("ml", "share-"+preset, surveytest.Memory("main", 1, 1)))
	}
	return survey.Of(names, nodes, pods)
}

func manyHolders() *survey.Survey {
	h := surveytest.NewHost("s60x8-2sw", "full")
	h.UnitMiB = 102
	var pods []*v1.Pod
	for i := range 21 {
		pods = append(pods, h.Pod("tenant", fmt.Sprintf("small-%02d", i), surveytest.Memory("main", 10, 0)))
	}
	pods = append(pods,
		h.Pod("a-team-with-a-long-name", "inference-gateway-deployment-6f9d7c5b8-x2x9z", surveytest.Memory("a-container-with-a-long-name", 400, 1)),
		h.Pod("ml", "trio", surveytest.Memory("a", 10, 1), surveytest.Slices("b", 1, 1), surveytest.Initial(surveytest.Memory("c", 5, 1))),
		h.Pod("ml", "wide", surveytest.Memory("main", 40, 2, 3)),
		h.Pod("ml", "everything", surveytest.Memory("main", 421, 4)))
	leaving := h.Pod("ml", "leaving", surveytest.Memory("main", 1, 5))
	leaving.DeletionTimestamp = &metav1.Time{Time: now}
	waiting := h.Bare("ml", "waiting", surveytest.Memory("main", 1))
	waiting.Spec.NodeName = ""
	ended := h.Pod("ml", "ended", surveytest.Whole("main", 7))
	ended.Status.Phase = v1.PodSucceeded
	pods = append(pods, leaving, waiting, ended)
	return survey.Of(names, []*v1.Node{h.Object()}, pods)
}

func closed() *survey.Survey {
	unreadable := surveytest.NewHost("t20x4", "unreadable")
	broken := unreadable.Pod("ml", "copied", surveytest.Memory("main", 4, 0))
	broken.Annotations[names.AllocationKey] = `{"version":"v9"}`
	missing := surveytest.NewHost("t20x4", "record-missing")
	tooMuch := surveytest.NewHost("t20x4", "too-much")
	devices := surveytest.NewHost("t20x4", "bad-devices")
	devices.Object()
	devices.Node.Annotations[names.DevicesKey] = "{"
	cordon := surveytest.NewHost("t20x4", "bad-cordon")
	cordon.Object()
	cordon.Node.Annotations[names.CordonKey] = "soon"
	return survey.Of(names,
		[]*v1.Node{unreadable.Object(), missing.Object(), tooMuch.Object(), devices.Node, cordon.Node},
		[]*v1.Pod{
			broken, unreadable.Pod("ml", "fine", surveytest.Memory("main", 4, 0)),
			overdue(missing.Bare("kube-system", "daemon-x7k2p", surveytest.Memory("main", 4))),
			missing.Bare("ml", "just-bound", surveytest.Whole("main", 1)),
			tooMuch.Pod("ml", "one", surveytest.Memory("main", 20, 0)), tooMuch.Pod("ml", "two", surveytest.Memory("main", 20, 0)),
			devices.Pod("ml", "hidden", surveytest.Memory("main", 2, 1)),
		})
}

func odd() *survey.Survey {
	until := now.Add(48 * time.Hour)
	sick := surveytest.NewHost("l300x8", "odd-node-with-quite-a-long-name.rack-17.datacenter-north.example.com")
	sick.Machine.SetHealth(0, "temperature 97 °C above the limit of 95 °C; 显存温度过高，请检查风扇\x1b[31m")
	sick.Machine.SetHealth(1, "lost")
	sick.Cordon = []contract.CordonedCard{{Minor: 2, Reason: "memory test", Until: &until}, {Minor: 3}, {Minor: 4, Reason: "x"}}
	swapped := surveytest.NewHost("t20x4", "swapped")
	before := swapped.Pod("ml", "from-before", surveytest.Memory("main", 3, 2))
	for i := range swapped.Machine.Cards {
		if swapped.Machine.Cards[i].Minor == 2 {
			swapped.Machine.Cards[i].UUID = "GCU-NEW"
		}
	}
	gone := swapped.Pod("ml", "card-gone", surveytest.Memory("main", 3, 3))
	swapped.Machine.Remove(3)
	down := surveytest.NewHost("t20x4", "down")
	down.Object()
	down.Node.Labels[names.SharingLabel] = "false"
	down.Node.Spec.Unschedulable = true
	down.Node.Status.Conditions[0].Status = v1.ConditionUnknown
	down.Node.Status.Allocatable = nil
	silent := surveytest.NewHost("t20x4", "silent")
	removed := surveytest.NewHost("t20x4", "removed")
	return survey.Of(names,
		[]*v1.Node{sick.Object(), swapped.Object(), down.Node, silent.Node},
		[]*v1.Pod{
			sick.Pod("ml", "on-sick", surveytest.Memory("main", 8, 0)), sick.Pod("ml", "on-cordoned", surveytest.Memory("main", 8, 4)),
			before, gone, removed.Pod("ml", "orphan", surveytest.Memory("main", 2, 1)),
		})
}

func tenant() *survey.Survey {
	h := surveytest.NewHost("t20x4", "shared-node")
	s := survey.Of(names, []*v1.Node{h.Object()}, []*v1.Pod{h.Pod("mine", "job", surveytest.Memory("main", 4, 0))})
	s.Scope.Namespace, s.PodsSeen = "mine", false
	return s
}

func nodesUnseen() *survey.Survey {
	h := surveytest.NewHost("t20x4", "shared-node")
	s := survey.Of(names, nil, []*v1.Pod{h.Pod("mine", "job", surveytest.Memory("main", 8, 0, 1)), h.Pod("mine", "train", surveytest.Whole("main", 3))})
	s.NodesSeen = false
	return s
}
