package verdict_test

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/scheduler/survey"
	"github.com/topscloud/topscloud/scheduler/surveytest"
	"github.com/topscloud/topscloud/scheduler/verdict"
)

func requesting(p *v1.Pod, name v1.ResourceName, amount string) *v1.Pod {
	p.Spec.Containers[0].Resources.Requests = v1.ResourceList{name: resource.MustParse(amount)}
	return p
}

func judged(t *testing.T, node *v1.Node, pod *v1.Pod, others ...*v1.Pod) *verdict.Node {
	t.Helper()
	s := survey.Of(surveytest.Names, []*v1.Node{node}, append(others, pod))
	req, err := share.Parse(surveytest.Names, pod, share.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	nodes := verdict.New(s, pod, req).Nodes(s, s.Ledger(surveytest.Now, time.Minute).View())
	if len(nodes) != 1 {
		t.Fatalf("%d nodes, want 1", len(nodes))
	}
	return &nodes[0]
}

func TestObjections(t *testing.T) {
	inZone := func(zone string) *v1.Affinity {
		return &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "zone", Operator: v1.NodeSelectorOpIn, Values: []string{zone}}}}},
		}}}
	}
	tests := map[string]struct {
		node func(*v1.Node)
		pod  func(*v1.Pod)
		want string // parts, joined by |; empty means that nothing is objected
	}{
		"all is well":        {},
		"no such label":      {pod: func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"a": "b"} }, want: "no label a (nodeSelector)"},
		"another value":      {pod: func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "b"} }, want: "label zone is a, not b (nodeSelector)"},
		"affinity":           {pod: func(p *v1.Pod) { p.Spec.Affinity = inZone("b") }, want: "required node affinity does not match"},
		"affinity that does": {pod: func(p *v1.Pod) { p.Spec.Affinity = inZone("a") }},
		"a taint": {
			node: func(n *v1.Node) {
				n.Spec.Taints = []v1.Taint{{Key: "only", Value: "x", Effect: v1.TaintEffectNoSchedule}}
			},
			want: "taint only=x:NoSchedule not tolerated",
		},
		"a taint that is tolerated": {
			node: func(n *v1.Node) {
				n.Spec.Taints = []v1.Taint{{Key: "only", Value: "x", Effect: v1.TaintEffectNoExecute}}
			},
			pod: func(p *v1.Pod) {
				p.Spec.Tolerations = []v1.Toleration{{Key: "only", Operator: v1.TolerationOpExists}}
			},
		},
		"a taint that is only a wish": {node: func(n *v1.Node) {
			n.Spec.Taints = []v1.Taint{{Key: "only", Effect: v1.TaintEffectPreferNoSchedule}}
		}},
		"a cordoned node": {
			node: func(n *v1.Node) {
				n.Spec.Unschedulable = true
				n.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}}
			},
			want: "node is cordoned",
		},
		"cpu":                     {pod: func(p *v1.Pod) { requesting(p, v1.ResourceCPU, "3500m") }, want: "not enough cpu: 3500m asked, 3 of 4 left"},
		"cpu that is just there":  {pod: func(p *v1.Pod) { requesting(p, v1.ResourceCPU, "3") }},
		"a resource there is not": {pod: func(p *v1.Pod) { requesting(p, "example.com/nic", "1") }, want: "not enough example.com/nic: 1 asked, 0 of 0 left"},
		"pods":                    {node: func(n *v1.Node) { n.Status.Allocatable[v1.ResourcePods] = resource.MustParse("1") }, want: "too many pods: 1 of 1"},
		"two at once":             {node: func(n *v1.Node) { n.Spec.Unschedulable = true }, pod: func(p *v1.Pod) { requesting(p, v1.ResourceCPU, "5") }, want: "node is cordoned|not enough cpu: 5 asked, 3 of 4 left"},
	}
	for name, tt := range tests {
		h := surveytest.NewHost("t20x4", "n1")
		h.Node.Labels["zone"] = "a"
		h.Node.Status.Allocatable[v1.ResourceCPU] = resource.MustParse("4")
		node, pod := h.Object(), surveytest.Waiting("team", "p", surveytest.Memory("main", 8))
		other := requesting(h.Pod("team", "other", surveytest.Memory("main", 30, 0)), v1.ResourceCPU, "1")
		if tt.node != nil {
			tt.node(node)
		}
		if tt.pod != nil {
			tt.pod(pod)
		}
		n := judged(t, node, pod, other)
		var got []string
		for _, o := range n.Others {
			got = append(got, o.Text)
		}
		if strings.Join(got, "|") != tt.want || n.Fits() != (tt.want == "") || n.GCU != placement.Fit {
			t.Errorf("%s: got %q, GCU reason %d", name, got, n.GCU)
		}
	}
}

// What other pods ask of CPU counts until they are gone, nominated ones included.
func TestWithout(t *testing.T) {
	h := surveytest.NewHost("t20x4", "n1")
	h.Node.Status.Allocatable[v1.ResourceCPU] = resource.MustParse("4")
	pod := requesting(surveytest.Waiting("team", "p", surveytest.Memory("main", 8)), v1.ResourceCPU, "2")
	other := requesting(h.Bare("team", "other", surveytest.Work{Name: "main"}), v1.ResourceCPU, "1")
	nominated := requesting(surveytest.Waiting("team", "next", surveytest.Whole("main", 0, 1, 2, 3)), v1.ResourceCPU, "2")
	nominated.Status.NominatedNodeName = "n1"
	n := judged(t, h.Object(), pod, other, nominated)
	if n.Fits() || n.GCU == placement.Fit || !n.Frees(other) {
		t.Errorf("the nominated pod's room is given away: %+v", n.Others)
	}
	if !n.Without(map[types.UID]bool{other.UID: true}) || n.Without(nil) {
		t.Error("without the other pod there is CPU enough, with it there is not")
	}
	// A pod of lower priority has no say.
	high := int32(10)
	pod.Spec.Priority = &high
	if n := judged(t, h.Object(), pod, other, nominated); !n.Fits() {
		t.Errorf("the room of a pod of lower priority is kept: %+v, GCU reason %d", n.Others, n.GCU)
	}
}

func TestNotEvaluated(t *testing.T) {
	p := surveytest.Waiting("team", "p", surveytest.Memory("main", 8))
	if got := verdict.NotEvaluated(p); got != "" {
		t.Errorf("got %q", got)
	}
	p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{}}
	p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{}}
	p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}}
	p.Spec.Volumes = []v1.Volume{{VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}}
	p.Spec.ResourceClaims = []v1.PodResourceClaim{{}}
	if got := verdict.NotEvaluated(p); got != "pod affinity, topology spread, host ports, where its volumes are, resource claims" {
		t.Errorf("got %q", got)
	}
}
