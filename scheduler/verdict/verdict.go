package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/scheduler/survey"
)

// Node is one node as judged for a pod.
type Node struct {
	Object *v1.Node
	Ledger *ledger.Node
	// GCU is the scheduler's reason; Fit also for a pod that asks for no GCU.
	GCU placement.Reason
	// Others are what else stands against the pod, sorted.
	Others []Objection
	// Pods are the pods on the node.
	Pods []*v1.Pod

	judge *Judge
}

// Fits says whether nothing that was evaluated stands against the pod.
func (n *Node) Fits() bool { return n.GCU == placement.Fit && len(n.Others) == 0 }

// Kind is what an objection is about.
type Kind string

// The kinds of objections.
const (
	Selector Kind = "selector" // nodeSelector or required affinity
	Taint    Kind = "taint"
	Cordon   Kind = "cordon" // kubectl cordon
	Resource Kind = "resource"
)

// Objection is something other than GCU that stands against a pod on a node.
type Objection struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
	// Resource names what is short, of kind resource.
	Resource v1.ResourceName `json:"resource,omitempty"`
}

// Judge judges nodes for one pod.
type Judge struct {
	pod      *v1.Pod
	req      *share.Request // nil when the pod asks for no GCU
	requests v1.ResourceList
	ours     map[v1.ResourceName]bool
	affinity nodeaffinity.RequiredNodeAffinity
}

// New prepares the judgement of a pod; req is its GCU request, nil for none.
func New(s *survey.Survey, pod *v1.Pod, req *share.Request) *Judge {
	j := &Judge{
		pod: pod, req: req, ours: map[v1.ResourceName]bool{}, affinity: nodeaffinity.GetRequiredNodeAffinity(pod),
		requests: requests(pod),
	}
	for k := share.Kind(0); k < share.Kinds; k++ {
		if name := k.Resource(s.Names); name != "" {
			j.ours[v1.ResourceName(name)] = true
		}
	}
	return j
}

// Nodes judges all nodes of a survey, sorted by name. view is the ledger's.
func (j *Judge) Nodes(s *survey.Survey, view *ledger.View) []Node {
	on := map[string][]*v1.Pod{}
	for _, p := range s.Pods {
		if p.Spec.NodeName != "" && p.UID != j.pod.UID {
			on[p.Spec.NodeName] = append(on[p.Spec.NodeName], p)
		}
	}
	nominated := s.Nominated(j.pod)
	out := make([]Node, 0, len(s.Nodes))
	for _, obj := range s.Nodes {
		n := Node{Object: obj, Ledger: survey.WithNominated(s.Names, view.Node(obj.Name), nominated[obj.Name]), judge: j}
		n.Pods = slices.Concat(on[obj.Name], nominated[obj.Name])
		if j.req != nil {
			n.GCU = placement.Fits(&n.Ledger.Node, j.req)
		}
		n.Others = j.objections(&n, nil)
		out = append(out, n)
	}
	return out
}

// Without says whether everything but GCU would be well on the node if some pods were gone.
func (n *Node) Without(gone map[types.UID]bool) bool { return len(n.judge.objections(n, gone)) == 0 }

func (j *Judge) objections(n *Node, gone map[types.UID]bool) []Objection {
	var out []Objection
	if text := j.unselected(n.Object); text != "" {
		out = append(out, Objection{Kind: Selector, Text: text})
	}
	if text := j.untolerated(n.Object); text != "" {
		out = append(out, Objection{Kind: Taint, Text: text})
	}
	unschedulable := v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}
	if n.Object.Spec.Unschedulable && !corev1.TolerationsTolerateTaint(klog.Background(), j.pod.Spec.Tolerations, &unschedulable, false) {
		out = append(out, Objection{Kind: Cordon, Text: "node is cordoned"})
	}
	return append(out, j.short(n, gone)...)
}

func (j *Judge) unselected(node *v1.Node) string {
	if ok, err := j.affinity.Match(node); err != nil {
		return fmt.Sprintf("node affinity cannot be read: %v", err)
	} else if ok {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(j.pod.Spec.NodeSelector)) {
		switch has, ok := node.Labels[key]; {
		case !ok:
			return fmt.Sprintf("no label %s (nodeSelector)", key)
		case has != j.pod.Spec.NodeSelector[key]:
			return fmt.Sprintf("label %s is %s, not %s (nodeSelector)", key, has, j.pod.Spec.NodeSelector[key])
		}
	}
	return "required node affinity does not match"
}

func (j *Judge) untolerated(node *v1.Node) string {
	hard := func(t *v1.Taint) bool {
		// The taint of a cordoned node is told apart, from its cause.
		return t.Key != v1.TaintNodeUnschedulable && (t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute)
	}
	taint, found := corev1.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, j.pod.Spec.Tolerations, hard, false)
	if !found {
		return ""
	}
	return "taint " + taint.ToString() + " not tolerated"
}

// short compares sums of requests with what kubelet offers, as the scheduler does. GCU resources are
// left out: the ledger counts them.
func (j *Judge) short(n *Node, gone map[types.UID]bool) []Objection {
	used := v1.ResourceList{}
	pods := int64(0)
	for _, p := range n.Pods {
		if gone[p.UID] {
			continue
		}
		pods++
		for name, q := range requests(p) {
			sum := used[name]
			sum.Add(q)
			used[name] = sum
		}
	}
	var out []Objection
	for name, asked := range j.requests {
		if asked.IsZero() || j.ours[name] {
			continue
		}
		have := n.Object.Status.Allocatable[name]
		left := have.DeepCopy()
		left.Sub(used[name])
		if left.Cmp(asked) < 0 {
			if left.Sign() < 0 {
				left.Set(0)
			}
			out = append(out, Objection{Kind: Resource, Resource: name, Text: fmt.Sprintf("not enough %s: %s asked, %s of %s left", name, asked.String(), left.String(), have.String())})
		}
	}
	if limit := n.Object.Status.Allocatable.Pods(); !limit.IsZero() && pods+1 > limit.Value() {
		out = append(out, Objection{Kind: Resource, Resource: v1.ResourcePods, Text: fmt.Sprintf("too many pods: %d of %d", pods, limit.Value())})
	}
	slices.SortFunc(out, func(a, b Objection) int { return cmp.Compare(a.Text, b.Text) })
	return out
}

// Frees says whether the end of a pod would give back anything that this pod lacks on the node besides
// GCU.
func (n *Node) Frees(p *v1.Pod) bool {
	list := requests(p)
	for _, o := range n.Others {
		if q := list[o.Resource]; o.Kind == Resource && (!q.IsZero() || o.Resource == v1.ResourcePods) {
			return true
		}
	}
	return false
}

func requests(p *v1.Pod) v1.ResourceList {
	return resource.PodRequests(p, resource.PodResourcesOptions{UseStatusResources: true})
}

// NotEvaluated names what of the pod only a scheduler can judge, empty when there is nothing.
func NotEvaluated(p *v1.Pod) string {
	var out []string
	if a := p.Spec.Affinity; a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
		out = append(out, "pod affinity")
	}
	if len(p.Spec.TopologySpreadConstraints) > 0 {
		out = append(out, "topology spread")
	}
	for i := range p.Spec.Containers {
		if slices.ContainsFunc(p.Spec.Containers[i].Ports, func(port v1.ContainerPort) bool { return port.HostPort > 0 }) {
			out = append(out, "host ports")
			break
		}
	}
	if slices.ContainsFunc(p.Spec.Volumes, func(v v1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil }) {
		out = append(out, "where its volumes are")
	}
	if len(p.Spec.ResourceClaims) > 0 {
		out = append(out, "resource claims")
	}
	return strings.Join(out, ", ")
}
