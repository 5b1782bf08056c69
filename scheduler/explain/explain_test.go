package explain_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/explain"
	"github.com/topscloud/topscloud/scheduler/screen"
	"github.com/topscloud/topscloud/scheduler/survey"
	"github.com/topscloud/topscloud/scheduler/surveytest"
)

var (
	names = surveytest.Names
	now   = surveytest.Now
)

// scene is a cluster and the pod that is asked about.
type scene struct {
	nodes   []*v1.Node
	pods    []*v1.Pod
	pod     *v1.Pod
	tenant  bool // only the pod's namespace may be read
	subject explain.Subject
}

func (s scene) explanation() *explain.Explanation {
	subject := s.subject
	subject.Pod = s.pod
	if subject.Asked == "" {
		subject.Asked = "pod/" + s.pod.Name
	}
	if subject.Namespace == "" {
		subject.Namespace = s.pod.Namespace
	}
	pods := s.pods
	if s.pod != nil {
		pods = append(slices.Clone(pods), s.pod)
	}
	seen := survey.Of(names, s.nodes, pods)
	if s.tenant {
		seen.NodesSeen, seen.PodsSeen, seen.Nodes = false, false, nil
		seen.Unseen = []string{
			"Pods of namespaces other than " + subject.Namespace + " may not be read (list pods).",
			"Nodes may not be read (list nodes): their cards, labels and taints are unknown.",
		}
	}
	return explain.Explain(seen, &subject, explain.Options{Now: now, RecordTimeout: time.Minute})
}

func node(name string, cpu string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status:     v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourcePods: resource.MustParse("110")}},
	}
}

func asking(pod *v1.Pod, cpu string) *v1.Pod {
	pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
	return pod
}

// busy is the scene of the README: memory is short, one node is short of CPU, one has no GCU.
func busy() scene {
	a := surveytest.NewHost("t20x4", "gcu-node-1")
	a.Cordon = []contract.CordonedCard{{Minor: 3, Reason: "fan to be replaced"}}
	b := surveytest.NewHost("t20x4", "gcu-node-2")
	b.Node.Status.Allocatable[v1.ResourceCPU] = resource.MustParse("16")
	pods := []*v1.Pod{
		a.Pod("serving", "chat-6f9d7c5b8-x2x9z", surveytest.Memory("server", 20, 0)),
		a.Pod("serving", "embed-7c44f8d9b-q8w4k", surveytest.Memory("server", 15, 1)),
		a.Pod("research", "pretrain-0", surveytest.Whole("trainer", 2)),
		asking(b.Pod("batch", "nightly-eval-28561-dr7vz", surveytest.Whole("eval", 0)), "14"),
	}
	pod := asking(surveytest.Waiting("serving", "rerank-6d4f7c9-k8s2p", surveytest.Memory("server", 20)), "4")
	surveytest.Said(pod, "0/3 nodes are available: 1 Insufficient cpu, 1 no GCU on the node, 1 no card with enough free GCU memory. "+
		"largest free share on a card is 17 units, 20 asked. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.")
	return scene{nodes: []*v1.Node{a.Object(), b.Object(), node("web-1", "32")}, pods: pods, pod: pod}
}

func scenes() map[string]scene {
	one := func() *surveytest.Host { return surveytest.NewHost("t20x4", "gcu-node-1") }
	simple := func(change func(*v1.Pod)) scene {
		h := one()
		pod := surveytest.Waiting("team", "p", surveytest.Memory("main", 8))
		change(pod)
		return scene{nodes: []*v1.Node{h.Object()}, pod: pod}
	}
	out := map[string]scene{
		"busy": busy(),
		"bytes": simple(func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Limits[v1.ResourceName(names.ResourceMemory)] = resource.MustParse("8Gi")
			surveytest.Said(p, `0/1 nodes are available: limit enflame.com/gcu-memory "8Gi": 8Gi is 8589934592 units of 1 GiB; write 8.`)
		}),
		"scheduler-misspelled": simple(func(p *v1.Pod) { p.Spec.SchedulerName = "gcu-schedular" }),
		"scheduler-unnamed":    simple(func(p *v1.Pod) { p.Spec.SchedulerName = "default-scheduler" }),
		"policy": simple(func(p *v1.Pod) {
			p.Annotations[names.PolicyKey] = "bin-pack"
			surveytest.Said(p, `0/1 nodes are available: enflame.com/gcu-policy "bin-pack": want binpack, spread.`)
		}),
		"label-misspelled": simple(func(p *v1.Pod) {
			p.Spec.NodeSelector = map[string]string{"enflame.com/gcu.modle": "T20"}
			surveytest.Said(p, "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.")
		}),
		"label-value": simple(func(p *v1.Pod) {
			p.Spec.NodeSelector = map[string]string{"enflame.com/gcu.model": "T21"}
		}),
		"annotation-only": simple(func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Limits = nil
			p.Annotations[names.CardsKey] = "2"
			p.Annotations["enflame.com/gcu-polcy"] = "spread"
		}),
		"resource-misspelled": simple(func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Limits = v1.ResourceList{"enflame.com/gcu-mem": resource.MustParse("8")}
		}),
		"room": simple(func(*v1.Pod) {}),
		"cpu": simple(func(p *v1.Pod) {
			asking(p, "65")
			surveytest.Said(p, "0/1 nodes are available: 1 Insufficient cpu.")
		}),
	}
	tenant := busy()
	tenant.tenant = true
	out["tenant"] = tenant

	h := surveytest.NewHost("s60x8-2sw", "gcu-node-1")
	pair := surveytest.Waiting("team", "pair", surveytest.Whole("main", 0, 1))
	pair.Annotations[names.TopologyKey] = contract.TopologySameSwitch
	out["topology"] = scene{nodes: []*v1.Node{h.Object()}, pod: pair, pods: []*v1.Pod{
		h.Pod("team", "a", surveytest.Whole("main", 0, 1, 2)), h.Pod("team", "b", surveytest.Whole("main", 4, 5, 6)),
	}}

	h = one()
	broken := h.Pod("team", "broken", surveytest.Memory("main", 8, 0))
	broken.Annotations[names.AllocationKey] = "{"
	out["closed"] = scene{nodes: []*v1.Node{h.Object()}, pods: []*v1.Pod{broken}, pod: surveytest.Waiting("team", "p", surveytest.Memory("main", 8))}
	out["record-unreadable"] = scene{nodes: []*v1.Node{h.Object()}, pod: broken}

	h = one()
	out["well"] = scene{nodes: []*v1.Node{h.Object()}, pod: h.Pod("team", "p", surveytest.Memory("main", 16, 1, 2), surveytest.Whole("side", 3))}
	unrecorded := h.Bare("team", "p", surveytest.Memory("main", 8))
	unrecorded.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-3 * time.Minute))
	foreign := h.Bare("team", "p", surveytest.Memory("main", 8))
	foreign.Spec.SchedulerName = "default-scheduler"
	foreign.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-5 * time.Second))
	out["placed-by-another"] = scene{nodes: []*v1.Node{h.Object()}, pod: foreign}
	out["unrecorded"] = scene{nodes: []*v1.Node{h.Object()}, pod: unrecorded}
	ended := h.Pod("team", "p", surveytest.Memory("main", 8, 0))
	ended.Status = v1.PodStatus{Phase: v1.PodFailed, Reason: "UnexpectedAdmissionError", Message: "Pod was rejected: Allocate failed."}
	out["ended"] = scene{nodes: []*v1.Node{h.Object()}, pod: ended}
	out["quota"] = scene{nodes: []*v1.Node{h.Object()}, subject: explain.Subject{
		Asked: "deployment/web", Namespace: "team", Pods: "2 wanted: none there",
		Refusals: []string{`pods "web-5d4-" is forbidden: exceeded quota: gcu, requested: requests.enflame.com/gcu-memory=8, used: requests.enflame.com/gcu-memory=16, limited: requests.enflame.com/gcu-memory=16`},
	}}
	return out
}

func text(t *testing.T, x *explain.Explanation, wide bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := explain.Draw(x, explain.DrawOptions{Now: now, Wide: wide}).Text(&b, false); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestExplain(t *testing.T) {
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			got := text(t, s.explanation(), false)
			surveytest.Golden(t, "testdata/"+name+".txt", []byte(got))
			for line := range strings.Lines(got) {
				if n := screen.Columns(strings.TrimSuffix(line, "\n")); n > screen.Width {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
}

// A pod that waits for CPU is never said to fit, whatever cards are free.
func TestNeverFitsWhatWaitsForCPU(t *testing.T) {
	x := scenes()["cpu"].explanation()
	for _, n := range x.Nodes {
		if n.Fits || !n.GCUFits {
			t.Errorf("%+v: want room on cards and no fit", n)
		}
	}
	if got := text(t, x, true); strings.Contains(got, "fits") {
		t.Errorf("says fits:\n%s", got)
	}
}

// The pictures of the documentation are drawn by the code that users run.
func TestPictures(t *testing.T) {
	x := busy().explanation()
	surveytest.Golden(t, "../../docs/pictures/why.txt", []byte(text(t, x, false)))
	surveytest.Golden(t, "../../docs/pictures/why.svg", explain.Draw(x, explain.DrawOptions{Now: now}).SVG())
}
