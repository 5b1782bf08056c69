package survey

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// Survey is what was seen of a cluster.
type Survey struct {
	Names *contract.Names
	Scope Scope
	// Nodes and Pods are sorted by name. Pods that have ended are left out.
	Nodes []*v1.Node
	Pods  []*v1.Pod
	// NodesSeen says that all nodes in scope were seen, PodsSeen that the pods of all namespaces were,
	// NamespaceSeen that at least those of the scope's namespace were.
	NodesSeen, PodsSeen, NamespaceSeen bool
	// Unseen says what may not be read, one sentence each.
	Unseen []string
}

// Scope limits what Read reads.
type Scope struct {
	// Nodes are the names of the nodes wanted, and of their pods; empty means all.
	Nodes []string
	// Namespace is read alone when the pods of all namespaces may not be. Empty is no namespace.
	Namespace string
	// HoldersOnly leaves out pods that ask for no GCU.
	HoldersOnly bool
}

// Read fetches nodes and pods.
func Read(ctx context.Context, client kubernetes.Interface, names *contract.Names, scope Scope) (*Survey, error) {
	scope.Nodes = slices.Compact(slices.Sorted(slices.Values(scope.Nodes)))
	s := &Survey{Names: names, Scope: scope}
	if err := s.readPods(ctx, client); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	read := s.getNodes
	if len(scope.Nodes) == 0 {
		read = s.listNodes
	}
	if err := read(ctx, client); err != nil {
		return nil, err
	}
	s.sort()
	return s, nil
}

// Of returns a survey of objects at hand, complete as they are.
func Of(names *contract.Names, nodes []*v1.Node, pods []*v1.Pod) *Survey {
	s := &Survey{Names: names, Nodes: slices.Clone(nodes), NodesSeen: true, PodsSeen: true, NamespaceSeen: true}
	for _, p := range pods {
		if !ledger.Ended(p) {
			s.Pods = append(s.Pods, p)
		}
	}
	s.sort()
	return s
}

func (s *Survey) sort() {
	slices.SortFunc(s.Nodes, func(a, b *v1.Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Pods, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// Complete says whether everything in scope that decides about room was seen.
func (s *Survey) Complete() bool { return s.NodesSeen && s.PodsSeen }

// Ledger returns a ledger of its own that holds what was seen, as a scheduler with that recordTimeout
// has it.
func (s *Survey) Ledger(now time.Time, recordTimeout time.Duration) *ledger.Ledger {
	l := ledger.New(s.Names)
	for _, n := range s.Nodes {
		l.ObserveNode(n)
	}
	for _, p := range s.Pods {
		l.Observe(p)
		if bound, ok := BoundAt(p); ok && now.Sub(bound) >= recordTimeout {
			l.MarkOverdue(p.UID)
		}
	}
	return l
}

// BoundAt returns when a pod was bound.
func BoundAt(p *v1.Pod) (time.Time, bool) {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time, true
		}
	}
	if p.Status.StartTime != nil {
		return p.Status.StartTime.Time, true
	}
	return time.Time{}, false
}

// Nominated returns the pods that wait for their victims to leave a node, by node, those first that
// the scheduler counts first. It keeps their room from pods of lower or equal priority; self, which may
// be nil, is such a pod and is left out.
func (s *Survey) Nominated(self *v1.Pod) map[string][]*v1.Pod {
	out := map[string][]*v1.Pod{}
	for _, p := range s.Pods {
		if p.Spec.NodeName != "" || p.Status.NominatedNodeName == "" {
			continue
		}
		if self != nil && (p.UID == self.UID || priority(p) < priority(self)) {
			continue
		}
		out[p.Status.NominatedNodeName] = append(out[p.Status.NominatedNodeName], p)
	}
	for _, list := range out {
		slices.SortStableFunc(list, func(a, b *v1.Pod) int { return cmp.Compare(priority(b), priority(a)) })
	}
	return out
}

func priority(p *v1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// WithNominated returns a node with the room of nominated pods taken: on the cards that the chooser
// gives them, or, while there is no room, as much of it as there is.
func WithNominated(names *contract.Names, n *ledger.Node, pods []*v1.Pod) *ledger.Node {
	for _, p := range pods {
		req, err := share.Parse(names, p, share.Defaults{UnitMiB: n.UnitMiB})
		if err != nil || req == nil {
			continue
		}
		if plan, _ := placement.Choose(&n.Node, req); plan != nil {
			n = n.With(ledger.Plan(p, n.Name, req, plan.Record(&n.Node, req)))
		} else {
			n = n.With(ledger.Claim(p, n.Name, req))
		}
	}
	return n
}
