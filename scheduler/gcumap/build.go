package gcumap

import (
	"cmp"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/survey"
)

// Options of Build.
type Options struct {
	// RecordTimeout is the scheduler's: how long a bound pod may be without a record.
	RecordTimeout time.Duration
	Now           time.Time
}

// Build gives a survey to a ledger and writes down what the ledger makes of it.
func Build(s *survey.Survey, o Options) *Map {
	b := &builder{
		names: s.Names, named: len(s.Scope.Nodes) > 0,
		nodes: map[string]*v1.Node{}, pods: map[types.UID]*v1.Pod{},
	}
	m := &Map{APIVersion: APIVersion, Kind: Kind, Incomplete: unseen(s), Nodes: []Node{}}
	for _, n := range s.Nodes {
		b.nodes[n.Name] = n
	}
	for _, p := range s.Pods {
		b.pods[p.UID] = p
		if p.Spec.NodeName == "" {
			m.WaitingPods++
		}
	}
	for n := range s.Ledger(o.Now, o.RecordTimeout).View().Nodes() {
		if !b.shown(n) {
			m.OtherNodes++
			continue
		}
		m.Nodes = append(m.Nodes, b.node(n))
	}
	slices.SortFunc(m.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	for i := range m.Nodes {
		m.Totals.add(m.Nodes[i].Totals)
	}
	return m
}

type builder struct {
	names *contract.Names
	named bool
	nodes map[string]*v1.Node
	pods  map[types.UID]*v1.Pod
}

// shown says whether a node belongs on the map: it has cards, or it should have, or somebody holds
// something there, or it was asked for by name.
func (b *builder) shown(n *ledger.Node) bool {
	if b.named || n.Closed != placement.NoGCU || len(n.Holders()) > 0 {
		return true
	}
	return b.nodes[n.Name].Labels[b.names.PresentLabel] == "true"
}

func (b *builder) node(n *ledger.Node) Node {
	out := Node{
		Name: n.Name, Sharing: n.Sharing, MemoryUnitMiB: n.UnitMiB, SliceCount: n.SliceCount,
		Registered: n.Allocatable != share.Totals{}, Closed: b.closed(n), Groups: []Group{}, Cards: []Card{},
	}
	obj := b.nodes[n.Name]
	if obj == nil {
		out.Absent = true
		obj = &v1.Node{}
	}
	out.Schedulable = !out.Absent && !obj.Spec.Unschedulable
	out.Ready = slices.ContainsFunc(obj.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
	devices := announced(obj.Annotations[b.names.DevicesKey])
	cordons := cordoned(obj.Annotations[b.names.CordonKey])
	out.Groups = append(out.Groups, groups(n.Tree, devices)...)
	out.Totals.Nodes = 1
	for i := range n.Cards {
		card := writeCard(n, &n.Cards[i], devices, cordons)
		out.Cards = append(out.Cards, card)
		out.Totals.count(&card)
	}
	for _, h := range n.Holders() {
		b.place(&out, n, h)
	}
	for i := range out.Cards {
		sortHolders(out.Cards[i].Holders)
	}
	sortHolders(out.Elsewhere)
	return out
}

func writeCard(n *ledger.Node, c *placement.Card, devices map[int]contract.NodeDevice, cordons map[int]*Cordon) Card {
	out := Card{
		Minor: c.Minor, UUID: c.UUID, Model: c.Model,
		PCIBusID: devices[c.Minor].PCIBusID, NUMA: max(devices[c.Minor].NUMA, -1),
		Swapped: c.Swapped, TotalMiB: c.TotalMiB, UsedMiB: c.UsedMiB,
	}
	if n.Closed == placement.Open && n.Sharing {
		out.FreeMiB = c.FreeMiB()
		out.FreeUnits = share.Units(out.FreeMiB, n.UnitMiB)
		out.FreeSlices = share.Units(out.FreeMiB, share.SliceMiB(c.TotalMiB, n.SliceCount))
	}
	if c.Sick {
		out.Sick = devices[c.Minor].Health
	}
	if c.Cordoned {
		out.Cordon = cordons[c.Minor]
	}
	switch {
	case c.Sick:
		out.State = Sick
	case c.Swapped:
		out.State = Swapped
	case c.Whole:
		out.State = Whole
	case !c.Free():
		out.State = Shared
	case c.Cordoned:
		out.State = Cordoned
	default:
		out.State = Free
	}
	return out
}

// place writes a holder beside each card it holds.
func (b *builder) place(out *Node, n *ledger.Node, h *ledger.Holder) {
	charges := n.ChargesOf(h)
	if len(charges) == 0 && h.State != ledger.Unrecorded && h.State != ledger.Unreadable {
		return // only its init containers asked, and they are done
	}
	pod := b.pods[h.UID]
	base := Holder{
		Namespace: h.Namespace, Name: h.Name, UID: string(h.UID), State: h.State.String(),
		Overdue: h.Overdue, Leaving: pod.DeletionTimestamp != nil,
	}
	if len(charges) == 0 {
		base.Containers = b.containers(pod, h, -1)
		out.Elsewhere = append(out.Elsewhere, base)
	}
	for _, c := range charges {
		holder := base
		holder.MiB, holder.Whole = c.MiB, c.Whole
		holder.Containers = b.containers(pod, h, c.Minor)
		i := n.Index(c.Minor)
		if i < 0 {
			holder.Minor = &c.Minor
			out.Elsewhere = append(out.Elsewhere, holder)
			continue
		}
		if c.Whole {
			holder.MiB = out.Cards[i].TotalMiB // as the ledger charges it
		}
		out.Cards[i].Holders = append(out.Cards[i].Holders, holder)
	}
}

var phases = map[share.Phase]string{share.App: "app", share.Sidecar: "sidecar", share.Init: "init"}

// containers returns those that have a part in a holding. Without a record all of the pod's may.
func (b *builder) containers(pod *v1.Pod, h *ledger.Holder, minor int) []Container {
	limits, _, err := share.Limits(b.names, pod)
	if err != nil {
		return nil // the ledger says so
	}
	var out []Container
	for i := range limits {
		c := &limits[i]
		if c.Phase == share.Init && h.Initialized {
			continue
		}
		entry := Container{Name: c.Name, Phase: phases[c.Phase], Resource: c.Kind.Resource(b.names), Amount: c.Amount, Cards: c.Cards}
		if len(h.Containers) == 0 {
			out = append(out, entry)
			continue
		}
		at := slices.IndexFunc(h.Containers, func(a contract.ContainerAllocation) bool { return a.Name == c.Name })
		if at < 0 {
			continue
		}
		entry.Cards = len(h.Containers[at].Cards)
		for _, card := range h.Containers[at].Cards {
			if card.Minor == minor {
				entry.MiB = card.MemoryMiB
				out = append(out, entry)
			}
		}
	}
	return out
}

// noGCU is the Reason of a node that announces no cards.
const noGCU = "NoGCU"

var closures = map[placement.Closure]string{
	placement.NoGCU: noGCU, placement.BadDevices: "BadDevices", placement.BadRecord: "BadRecord",
	placement.MissingRecord: "MissingRecord", placement.Overcommitted: "Overcommitted", placement.CordonUnread: "CordonUnread",
}

// closed says why a node is closed in the scheduler's own words.
func (b *builder) closed(n *ledger.Node) *Closed {
	if n.Closed == placement.Open {
		return nil
	}
	nothing := &share.Request{} // a closed node says no before it looks at the request
	out := &Closed{Reason: closures[n.Closed], Message: placement.Fits(&n.Node, nothing).Text(b.names, nothing)}
	if text := n.Capacity().Problem; text != "" {
		out.Problems = append(out.Problems, Problem{Message: text})
	}
	for _, p := range n.Problems {
		entry := Problem{Message: p.Text}
		if p.Holder != nil {
			entry.Namespace, entry.Name = p.Holder.Namespace, p.Holder.Name
		}
		out.Problems = append(out.Problems, entry)
	}
	slices.SortStableFunc(out.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Message, b.Message))
	})
	return out
}

// sortHolders puts those that need a look first, then all by name.
func sortHolders(list []Holder) {
	calm := func(h *Holder) int {
		if h.State == ledger.Bound.String() {
			return 1
		}
		return 0
	}
	slices.SortFunc(list, func(a, b Holder) int {
		return cmp.Or(calm(&a)-calm(&b), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
}

// announced returns what the node says of each card. The ledger read the same text and found it good,
// or has no cards.
func announced(text string) map[int]contract.NodeDevice {
	out := map[int]contract.NodeDevice{}
	if d, err := contract.DecodeDevices(text); err == nil {
		for _, dev := range d.Devices {
			out[dev.Minor] = dev
		}
	}
	return out
}

func cordoned(text string) map[int]*Cordon {
	out := map[int]*Cordon{}
	if c, err := contract.DecodeCordon(text); err == nil {
		for _, card := range c.Cards {
			out[card.Minor] = &Cordon{Reason: strings.TrimSpace(card.Reason), Until: card.Until}
		}
	}
	return out
}

func (t *Totals) count(c *Card) {
	t.Cards++
	switch c.State {
	case Sick:
		t.Sick++
	case Swapped:
		t.Swapped++
	case Whole:
		t.Whole++
	case Shared:
		t.Shared++
	case Cordoned:
		t.Cordoned++
	default:
		t.Free++
	}
	t.TotalMiB = share.Add(t.TotalMiB, c.TotalMiB)
	t.PromisedMiB = share.Add(t.PromisedMiB, c.UsedMiB)
}

func (t *Totals) add(o Totals) {
	t.Nodes += o.Nodes
	t.Cards += o.Cards
	t.Free += o.Free
	t.Shared += o.Shared
	t.Whole += o.Whole
	t.Sick += o.Sick
	t.Cordoned += o.Cordoned
	t.Swapped += o.Swapped
	t.TotalMiB = share.Add(t.TotalMiB, o.TotalMiB)
	t.PromisedMiB = share.Add(t.PromisedMiB, o.PromisedMiB)
}
