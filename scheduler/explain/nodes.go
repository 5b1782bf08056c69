package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/remedy"
	"github.com/topscloud/topscloud/scheduler/verdict"
)

// judge writes down the verdict on each node and, when none has room, what would help.
func (e *explainer) judge(view *ledger.View, req *share.Request) {
	nodes := verdict.New(e.survey, e.pod, req).Nodes(e.survey, view)
	if len(nodes) == 0 {
		e.find("NoNodes", "The cluster has no nodes.", "")
	}
	e.unknownCards(view, req)
	room := ""
	for i := range nodes {
		n := &nodes[i]
		row := Node{Name: n.Object.Name, Fits: n.Fits(), GCUFits: n.GCU == placement.Fit, GCU: GCUText(e.survey.Names, n.Ledger, req)}
		for _, o := range n.Others {
			row.Others = append(row.Others, o.Text)
		}
		if row.Fits && room == "" {
			room = row.Name
		}
		e.out.Nodes = append(e.out.Nodes, row)
		e.closed(n.Ledger, req)
	}
	switch {
	case room != "":
		e.roomBut(room)
	case req != nil:
		e.out.Changes = Changes(e.survey.Names, e.pod, req, nodes)
	}
}

// closed names the pods whose records keep a node closed.
func (e *explainer) closed(n *ledger.Node, req *share.Request) {
	if req == nil {
		return
	}
	for _, p := range n.Problems {
		if p.Holder != nil {
			e.find("NodeClosed", fmt.Sprintf("Node %s takes no new GCU pod because of pod %s/%s.", n.Name, p.Holder.Namespace, p.Holder.Name),
				fmt.Sprintf("an administrator corrects its record: kubectl gcu repair %s -n %s", p.Holder.Name, p.Holder.Namespace))
		}
	}
}

// unknownCards finds wanted cards that no node has.
func (e *explainer) unknownCards(view *ledger.View, req *share.Request) {
	if req == nil {
		return
	}
	var known []string
	for n := range view.Nodes() {
		for i := range n.Cards {
			known = append(known, n.Cards[i].UUID)
		}
	}
	for _, uuid := range req.Use {
		if slices.Contains(known, uuid) {
			continue
		}
		do := ""
		if guess := nearest(uuid, known); guess != "" {
			do = "did you mean " + guess + "?"
		}
		e.find("UnknownCard", fmt.Sprintf("No node has card %s, which annotation %s asks for.", uuid, e.survey.Names.UseUUIDKey), do)
	}
}

// roomBut says why a pod may wait although a node has room.
func (e *explainer) roomBut(node string) {
	said, looked := saidOf(e.pod)
	unlooked := e.out.NotEvaluated != ""
	switch {
	case slices.ContainsFunc(e.out.Findings, func(f Finding) bool {
		return f.Reason == "UnknownScheduler" || f.Reason == "Gated"
	}):
		e.find("RoomNow", fmt.Sprintf("Node %s has room for it; it is the scheduler that is missing.", node), "")
	case !looked:
		e.find("NotLookedAt", fmt.Sprintf("Node %s has room for it, and no scheduler has looked at the pod yet.", node),
			fmt.Sprintf("if it stays so, see whether the scheduler runs: kubectl get lease -A | grep %s", contract.SchedulerName))
	case unlooked:
		e.find("NotEvaluated", fmt.Sprintf("Nothing that was evaluated here stands against node %s; not evaluated: %s.", node, e.out.NotEvaluated), "go by the scheduler's words")
	default:
		e.find("RoomNow", fmt.Sprintf("Node %s has room for it now; the scheduler's words are of %s ago.", node, ago(e.options.Now, said.Since)),
			"it should be placed at the scheduler's next try")
	}
}

// GCUText is the verdict on a node's cards in words, with numbers where there are any. It speaks of room,
// never of fitting: what else stands against a pod is not its business.
func GCUText(names *contract.Names, n *ledger.Node, req *share.Request) string {
	if req == nil {
		return "not asked for"
	}
	plan, why := placement.Choose(&n.Node, req)
	switch {
	case why == placement.Fit:
		return "room on " + cardList(plan)
	case why == placement.NoDevices, why == placement.NotSharing, why == placement.NotRegistered:
		return why.Text(names, req)
	case len(n.Problems) > 0:
		p := n.Problems[0]
		if p.Holder == nil {
			return "closed: " + p.Text
		}
		return fmt.Sprintf("closed by pod %s/%s: %s", p.Holder.Namespace, p.Holder.Name, p.Text)
	case n.Closed != placement.Open:
		if problem := n.Capacity().Problem; problem != "" {
			return "closed: " + problem
		}
		return why.Text(names, req)
	case why == placement.NoFreeCard, why == placement.NoFreeShare, why == placement.NoCloseFree, why == placement.NoneTogether:
		miss := placement.NewMiss(req)
		miss.See(&n.Node)
		if text := miss.Text(names); text != "" {
			text, _, _ = strings.Cut(text, "; it would fit")
			return text
		}
	}
	return why.Text(names, req)
}

func cardList(p *placement.Plan) string {
	var minors []int
	for _, set := range p.Cards {
		for minor := range set.All() {
			minors = append(minors, minor)
		}
	}
	slices.Sort(minors)
	minors = slices.Compact(minors)
	if len(minors) == 1 {
		return fmt.Sprintf("card %d", minors[0])
	}
	return "cards " + numbers(minors)
}

func numbers(list []int) string {
	var parts []string
	for _, n := range list {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, ", ")
}

// Changes finds what would make a request fit, nodes being those that it does not fit.
func Changes(names *contract.Names, pod *v1.Pod, req *share.Request, nodes []verdict.Node) []Change {
	var sites []remedy.Node
	for i := range nodes {
		n := &nodes[i]
		sites = append(sites, remedy.Node{Node: n.Ledger, Others: n.Without, Leavers: leavers(n, pod)})
	}
	var out []Change
	for _, c := range remedy.Find(sites, req) {
		change := Change{Change: c, Text: changeText(names, &c)}
		switch c.Kind {
		case remedy.Topology:
			change.ToTopology = topologyWord(c.Topology)
		case remedy.LessMemory, remedy.FewerCards:
			change.Counts = c.Resource.Resource(names)
			if c.Kind == remedy.FewerCards && c.Container == "" {
				change.Counts = names.CardsKey
			}
		}
		out = append(out, change)
	}
	return out
}

func topologyWord(t share.Topology) string {
	if t == share.SameNUMA {
		return contract.TopologySameNUMA
	}
	return contract.TopologyBestEffort
}

// leavers are the pods whose end would give something back that the pod lacks. Pods that come back at
// once, DaemonSets' and kubelet's own, are none.
func leavers(n *verdict.Node, self *v1.Pod) []remedy.Leaver {
	var out []remedy.Leaver
	for _, p := range n.Pods {
		_, mirror := p.Annotations[v1.MirrorPodAnnotationKey]
		if ref := metav1.GetControllerOf(p); mirror || p.UID == self.UID || ref != nil && ref.Kind == "DaemonSet" {
			continue
		}
		l := remedy.Leaver{UID: p.UID, Namespace: p.Namespace, Name: p.Name, Ending: p.DeletionTimestamp != nil}
		h := n.Ledger.Holder(p.UID)
		if h != nil {
			for _, c := range n.Ledger.ChargesOf(h) {
				l.MiB = share.Add(l.MiB, c.MiB)
			}
		}
		if h != nil || n.Frees(p) {
			out = append(out, l)
		}
	}
	return out
}

func changeText(names *contract.Names, c *remedy.Change) string {
	then := " (it then fits " + c.Node + ")"
	switch c.Kind {
	case remedy.Topology:
		return fmt.Sprintf("ask for less closeness: %s: %s", names.TopologyKey, topologyWord(c.Topology)) + then
	case remedy.LessMemory:
		return fmt.Sprintf("ask for %d instead of %d of %s in container %s", c.To, c.From, c.Resource.Resource(names), c.Container) + then
	case remedy.FewerCards:
		if c.Container == "" {
			return fmt.Sprintf("spread shares over %d instead of %d cards: %s: \"%d\"", c.To, c.From, names.CardsKey, c.To) + then
		}
		return fmt.Sprintf("ask for %d instead of %d of %s in container %s", c.To, c.From, c.Resource.Resource(names), c.Container) + then
	case remedy.Uncordon:
		var cards []string
		for _, m := range c.Minors {
			cards = append(cards, fmt.Sprintf("%s/%d", c.Node, m))
		}
		return "open cordoned cards: kubectl gcu uncordon " + strings.Join(cards, " ")
	}
	return finishText(c)
}

func finishText(c *remedy.Change) string {
	var pods []string
	ending := true
	for _, p := range c.Pods {
		held := ""
		if p.MiB > 0 {
			held = fmt.Sprintf(" (%d MiB)", p.MiB)
		}
		pods = append(pods, p.Namespace+"/"+p.Name+held)
		ending = ending && p.Ending
	}
	text := fmt.Sprintf("wait until these %d pods on %s have ended: %s", len(pods), c.Node, strings.Join(pods, ", "))
	if len(pods) == 1 {
		text = fmt.Sprintf("wait until pod %s on %s has ended", pods[0], c.Node)
	}
	if ending {
		text += "; ending already"
	}
	if !c.Smallest {
		text += "; a smaller set may do, but none of these can be left out"
	}
	return text
}
