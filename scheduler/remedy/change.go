package remedy

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
)

// Kind is what a change is about.
type Kind string

// The kinds, in the order of Find's answer: what the pod's owner can do alone comes first.
const (
	Topology   Kind = "topology"   // ask for less closeness
	LessMemory Kind = "lessMemory" // fewer units or slices
	FewerCards Kind = "fewerCards" // fewer whole cards, or a share over fewer cards
	Uncordon   Kind = "uncordon"   // open cards again
	Finish     Kind = "finish"     // pods that hold what is missing end
)

// Change is one way to make a request fit.
type Change struct {
	Kind Kind `json:"kind"`
	// Node is where the request fits then, the first of several.
	Node string `json:"node"`
	// Container, From and To: the container's amount, of kinds lessMemory and fewerCards. With an empty
	// container they are the number of cards that every share is spread over.
	Container string `json:"container,omitempty"`
	From      int64  `json:"from,omitempty"`
	To        int64  `json:"to,omitempty"`
	// Resource is what From and To count where Container is told.
	Resource share.Kind `json:"-"`
	// Topology is the wish to make instead, of kind topology.
	Topology share.Topology `json:"-"`
	// Minors are the cards to open, of kind uncordon.
	Minors []int `json:"minors,omitempty"`
	// Pods are those to end, of kind finish.
	Pods []Leaver `json:"pods,omitempty"`
	// Smallest says that nothing smaller of the kind would do.
	Smallest bool `json:"smallest"`
}

// Leaver is a pod that could end.
type Leaver struct {
	UID       types.UID `json:"uid"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	// MiB is the card memory that it holds.
	MiB int64 `json:"mib"`
	// Ending says that it is being deleted already.
	Ending bool `json:"ending,omitempty"`
}

// Node is one node as it can be tried.
type Node struct {
	*ledger.Node
	// Others says whether nothing but GCU would stand against the pod if some pods were gone; nil means
	// that nothing does.
	Others func(gone map[types.UID]bool) bool
	// Leavers are the pods on the node that could end and whose end gives something back.
	Leavers []Leaver
}

// Request returns the request with the change made.
func (c *Change) Request(req *share.Request) *share.Request {
	containers := slices.Clone(req.Containers)
	switch c.Kind {
	case Topology:
		out := *req
		out.Topology = c.Topology
		return &out
	case LessMemory, FewerCards:
		for i := range containers {
			switch {
			case c.Container == "" && containers[i].Kind.Fractional():
				containers[i].Cards = int(c.To)
			case c.Container != "" && containers[i].Name == c.Container:
				containers[i].Amount = c.To
				if c.Kind == FewerCards {
					containers[i].Cards = int(c.To)
				}
			}
		}
		return req.With(containers)
	}
	return req
}

// Node returns the node with the change made, as a chooser sees it.
func (c *Change) on(n Node) *placement.Node {
	switch c.Kind {
	case Uncordon:
		return uncordoned(n, c.Minors)
	case Finish:
		return without(n, c.Pods)
	}
	return &n.Node.Node
}

// Proves says whether the request fits a node with the change made.
func (c *Change) Proves(n Node, req *share.Request) bool {
	var gone map[types.UID]bool
	if c.Kind == Finish {
		gone = map[types.UID]bool{}
		for _, p := range c.Pods {
			gone[p.UID] = true
		}
	}
	return n.others(gone) && placement.Fits(c.on(n), c.Request(req)) == placement.Fit
}

func (n *Node) others(gone map[types.UID]bool) bool { return n.Others == nil || n.Others(gone) }

func uncordoned(n Node, minors []int) *placement.Node {
	out := n.Node.Node
	out.Cards = slices.Clone(out.Cards)
	for i := range out.Cards {
		if slices.Contains(minors, out.Cards[i].Minor) {
			out.Cards[i].Cordoned = false
		}
	}
	out.Trial = true // the node's agent offers the cards' units again
	return &out
}

func without(n Node, pods []Leaver) *placement.Node {
	node := n.Node
	for _, p := range pods {
		node = node.Without(p.UID)
	}
	out := node.Node
	out.Trial = true
	return &out
}
