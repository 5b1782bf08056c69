// Package fit tries a request that no pod makes yet: on which cards of which nodes its replicas would go
// now, one after the other, and what would have to change for those that do not fit.
//
// Promise: cards come from the scheduler's own chooser on a copy of its account, so that what is said to
// fit fits as long as nothing else changes. Which of several nodes the scheduler takes also depends on
// its other plugins, so the nodes are a prediction. Trial is a versioned format: within one APIVersion
// fields are added, never changed.
package fit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/explain"
	"github.com/topscloud/topscloud/scheduler/survey"
	"github.com/topscloud/topscloud/scheduler/verdict"
)

// The version and kind of a Trial in JSON and YAML.
const (
	APIVersion = "gcu.topscloud.dev/v1"
	Kind       = "Trial"
)

// Trial is the answer.
type Trial struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Asks is the request of one replica in words.
	Asks     string `json:"asks"`
	Replicas int    `json:"replicas"`
	// Placements are the replicas that fit, in the order in which they were tried.
	Placements []Placement `json:"placements"`
	// Findings are labels in the node selector that no node has.
	Findings []explain.Finding `json:"findings,omitempty"`
	// Nodes are the verdicts on nodes for the first replica that does not fit, Changes what would help it.
	Nodes   []explain.Node   `json:"nodes,omitempty"`
	Changes []explain.Change `json:"changes,omitempty"`
}

// Placement is where one replica goes.
type Placement struct {
	Node string `json:"node"`
	// Minors are its cards, MiB what it takes of each.
	Minors []int `json:"minors"`
	MiB    int64 `json:"mib"`
	// Closeness of its cards, 0 to 100.
	Closeness int `json:"closeness"`
}

// Request is what to try.
type Request struct {
	Kind     share.Kind
	Amount   int64
	Cards    int // 0: not said
	Topology string
	Policy   string
	Replicas int
	// NodeSelector as a pod has it.
	NodeSelector map[string]string
}

// pod returns a pod that asks for it.
func (r *Request) pod(names *contract.Names) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "replica", Annotations: map[string]string{}},
		Spec: v1.PodSpec{
			SchedulerName: contract.SchedulerName, NodeSelector: r.NodeSelector,
			Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Limits: v1.ResourceList{
				v1.ResourceName(r.Kind.Resource(names)): *resource.NewQuantity(r.Amount, resource.DecimalSI),
			}}}},
		},
	}
	if r.Cards > 0 {
		pod.Annotations[names.CardsKey] = fmt.Sprint(r.Cards)
	}
	if r.Topology != "" {
		pod.Annotations[names.TopologyKey] = r.Topology
	}
	if r.Policy != "" {
		pod.Annotations[names.PolicyKey] = r.Policy
	}
	return pod
}

func (r *Request) text(names *contract.Names) string {
	out := fmt.Sprintf("%d × %s", r.Amount, r.Kind.Resource(names))
	if r.Cards > 1 {
		out += fmt.Sprintf(" over %d cards", r.Cards)
	}
	if r.Topology != "" {
		out += ", " + r.Topology
	}
	if r.Policy != "" {
		out += ", " + r.Policy
	}
	for _, k := range slices.Sorted(maps.Keys(r.NodeSelector)) {
		out += fmt.Sprintf(", %s=%s", k, r.NodeSelector[k])
	}
	return out
}

// Try places the replicas one after the other. The ledger is the survey's; it is not changed. An error
// is a request that no node could meet as it is written.
func Try(s *survey.Survey, l *ledger.Ledger, r Request, weights placement.Weights) (*Trial, error) {
	view := l.View()
	pod := r.pod(s.Names)
	req, err := share.Parse(s.Names, pod, share.Defaults{UnitMiB: view.UnitMiB})
	if err != nil {
		return nil, err
	}
	if req == nil {
		return nil, &share.InvalidError{Field: "limit " + r.Kind.Resource(s.Names), Value: fmt.Sprint(r.Amount), Want: "want at least 1"}
	}
	out := &Trial{APIVersion: APIVersion, Kind: Kind, Asks: r.text(s.Names), Replicas: r.Replicas, Placements: []Placement{}, Findings: explain.LabelMistakes(s, pod)}
	nodes := verdict.New(s, pod, req).Nodes(s, view)
	for i := range r.Replicas {
		at, plan := choose(nodes, req, weights)
		if plan == nil {
			out.miss(s.Names, pod, req, nodes)
			break
		}
		n := &nodes[at]
		charges := plan.Charges(&n.Ledger.Node, req)
		p := Placement{Node: n.Object.Name, Closeness: plan.Closeness}
		for _, c := range charges {
			p.Minors, p.MiB = append(p.Minors, c.Minor), c.MiB
		}
		out.Placements = append(out.Placements, p)
		replica := pod.DeepCopy()
		replica.Name, replica.UID = fmt.Sprintf("replica-%d", i+1), types.UID(fmt.Sprintf("replica-%d", i+1))
		n.Ledger = n.Ledger.With(ledger.Plan(replica, n.Object.Name, req, plan.Record(&n.Ledger.Node, req)))
		n.GCU = placement.Fits(&n.Ledger.Node, req)
	}
	return out, nil
}

// choose returns the node of the best score, the first by name of equals; a nil plan is none at all.
func choose(nodes []verdict.Node, req *share.Request, weights placement.Weights) (int, *placement.Plan) {
	best, at, score := (*placement.Plan)(nil), -1, int64(-1)
	for i := range nodes {
		n := &nodes[i]
		if !n.Fits() {
			continue
		}
		plan, _ := placement.Choose(&n.Ledger.Node, req)
		if plan == nil {
			continue
		}
		if s := placement.Score(&n.Ledger.Node, req, plan, weights); s > score {
			best, at, score = plan, i, s
		}
	}
	return at, best
}

// miss writes down why the next replica does not fit. Replicas placed before it are no pods that could
// end, so they are not proposed to.
func (t *Trial) miss(names *contract.Names, pod *v1.Pod, req *share.Request, nodes []verdict.Node) {
	for i := range nodes {
		n := &nodes[i]
		row := explain.Node{Name: n.Object.Name, Fits: n.Fits(), GCUFits: n.GCU == placement.Fit, GCU: explain.GCUText(names, n.Ledger, req)}
		for _, o := range n.Others {
			row.Others = append(row.Others, o.Text)
		}
		t.Nodes = append(t.Nodes, row)
	}
	t.Changes = explain.Changes(names, pod, req, nodes)
}

// Group is a run of replicas with the same placement.
type Group struct {
	First, Last int
	Placement
}

// Groups joins replicas that follow each other and have the same placement.
func (t *Trial) Groups() []Group {
	var out []Group
	for i, p := range t.Placements {
		if k := len(out) - 1; k >= 0 && out[k].Node == p.Node && slices.Equal(out[k].Minors, p.Minors) {
			out[k].Last = i + 1
			continue
		}
		out = append(out, Group{i + 1, i + 1, p})
	}
	return out
}

// Cards names the cards of a placement.
func (p *Placement) Cards() string {
	minors := slices.SortedFunc(slices.Values(p.Minors), cmp.Compare)
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(minors), " ", ", "), "[]")
}
