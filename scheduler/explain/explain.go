package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/survey"
	"github.com/topscloud/topscloud/scheduler/verdict"
)

// Options of Explain.
type Options struct {
	Now           time.Time
	RecordTimeout time.Duration
}

// Explain judges a subject by what a survey saw.
func Explain(s *survey.Survey, subject *Subject, o Options) *Explanation {
	out := &Explanation{
		APIVersion: APIVersion, Kind: Kind, Asked: subject.Asked, Namespace: subject.Namespace,
		Unseen: slices.Concat(s.Unseen, subject.Unseen),
	}
	for _, text := range subject.Refusals {
		out.Findings = append(out.Findings, Finding{Reason: "NotCreated", Text: "Pods are refused: " + text, Do: refusalCure(text)})
	}
	pod := subject.Pod
	if pod == nil {
		out.State, out.Summary = NoPod, fmt.Sprintf("%s has no pod (%s).", subject.Asked, subject.Pods)
		if len(out.Findings) == 0 {
			out.Findings = append(out.Findings, Finding{"NoPod", "There is no pod, and no event says why.", "kubectl describe " + subject.Asked + " -n " + subject.Namespace})
		}
		return out
	}
	out.Pod, out.Scheduler = pod.Name, pod.Spec.SchedulerName
	out.Findings = append(out.Findings, mistakes(s.Names, pod)...)
	e := &explainer{survey: s, pod: pod, out: out, options: o, ledger: s.Ledger(o.Now, o.RecordTimeout)}
	switch {
	case ledger.Ended(pod):
		e.ended()
	case pod.Spec.NodeName != "":
		e.placed()
	default:
		e.waiting(subject.Claims)
	}
	if subject.Pods != "" {
		out.Summary += fmt.Sprintf(" Pods of %s: %s.", subject.Asked, subject.Pods)
	}
	return out
}

func refusalCure(text string) string {
	if strings.Contains(text, "exceeded quota") {
		return "free what the quota counts, or have the quota raised: kubectl describe resourcequota"
	}
	return ""
}

type explainer struct {
	survey  *survey.Survey
	pod     *v1.Pod
	out     *Explanation
	options Options
	ledger  *ledger.Ledger
}

func (e *explainer) find(reason, text, do string) {
	e.out.Findings = append(e.out.Findings, Finding{reason, text, do})
}

func (e *explainer) asks(req *share.Request) {
	for _, c := range req.Containers {
		e.out.Asks = append(e.out.Asks, Ask{c.Name, c.Kind.Resource(e.survey.Names), c.Amount, c.Cards})
	}
	if t := req.Topology; t == share.SameSwitch || t == share.SameNUMA {
		e.out.Topology = e.pod.Annotations[e.survey.Names.TopologyKey]
	}
}

func (e *explainer) ended() {
	e.out.State, e.out.Well = Ended, e.pod.Status.Phase == v1.PodSucceeded
	e.out.Summary = fmt.Sprintf("Pod %s has ended: %s. It holds no card any more.", e.pod.Name, e.pod.Status.Phase)
	if e.pod.Status.Reason == "" {
		return
	}
	do := ""
	if strings.HasPrefix(e.pod.Status.Reason, "OutOf") || e.pod.Status.Reason == "UnexpectedAdmissionError" {
		do = "kubelet turned it away after it was placed, which happens when a node starts anew; its owner makes another one, a lone pod has to be made again"
	}
	e.find(e.pod.Status.Reason, fmt.Sprintf("%s: %s", e.pod.Status.Reason, e.pod.Status.Message), do)
}

func (e *explainer) waiting(claims []Finding) {
	e.out.State = Waiting
	e.out.Summary = fmt.Sprintf("Pod %s has waited for %s.", e.pod.Name, ago(e.options.Now, e.pod.CreationTimestamp.Time))
	e.out.Said, _ = saidOf(e.pod)
	e.out.Findings = append(e.out.Findings, claims...)
	e.out.NotEvaluated = verdict.NotEvaluated(e.pod)
	view := e.ledger.View()
	req, err := share.Parse(e.survey.Names, e.pod, share.Defaults{UnitMiB: view.UnitMiB})
	if err != nil {
		e.find("BadRequest", "As the pod is written no node can take it: "+err.Error()+".", "")
		return
	}
	if req != nil {
		e.asks(req)
	} else if len(e.out.Findings) == 0 {
		e.find("NoGCU", "The pod asks for no GCU; what keeps it waiting has nothing to do with cards.", "")
	}
	if n := e.pod.Status.NominatedNodeName; n != "" {
		e.find("Nominated", fmt.Sprintf("Room is being made for it on node %s: pods of lower priority leave there.", n), "wait until they are gone")
	}
	e.out.Findings = append(e.out.Findings, LabelMistakes(e.survey, e.pod)...)
	if !e.survey.Complete() {
		e.find("Unseen", "Nodes cannot be judged with your rights; the scheduler's words are all there is.", "")
		return
	}
	e.judge(view, req)
}

func (e *explainer) placed() {
	e.out.State = Placed
	node := e.pod.Spec.NodeName
	e.out.Summary = fmt.Sprintf("Pod %s is on node %s, %s.", e.pod.Name, node, strings.ToLower(string(e.pod.Status.Phase)))
	e.ledger.Observe(e.pod) // the survey may have had no right to see it
	for _, cs := range slices.Concat(e.pod.Status.InitContainerStatuses, e.pod.Status.ContainerStatuses) {
		if w := cs.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
			e.find(w.Reason, strings.TrimSuffix(fmt.Sprintf("Container %s waits: %s: %s", cs.Name, w.Reason, w.Message), ": "), "")
		}
	}
	if e.pod.DeletionTimestamp != nil {
		e.find("Ending", "The pod is being deleted; it holds its cards until it is gone.", "")
	}
	if h := e.ledger.Holder(e.pod.UID); h != nil {
		e.holder(e.ledger.Node(node), h)
	} else if !share.Asks(e.survey.Names, e.pod) {
		e.out.Summary += " It asks for no GCU and holds none."
	}
	e.out.Well = len(e.out.Findings) == 0
}

// holder tells what the pod holds and what is wrong with that.
func (e *explainer) holder(n *ledger.Node, h *ledger.Holder) {
	limits, _, err := share.Limits(e.survey.Names, e.pod)
	if err == nil {
		e.asks(&share.Request{Containers: limits})
	}
	ref := e.pod.Name + " -n " + e.pod.Namespace
	switch h.State {
	case ledger.Unreadable:
		e.find("RecordUnreadable", fmt.Sprintf("Its record cannot be used: %s. Node %s takes no new GCU pod for that.", h.Problem, h.Node), "kubectl gcu repair "+ref)
	case ledger.Unrecorded:
		text := "It has no record: which card it holds is not known, room for it is set aside on the emptiest."
		do := "an agent writes the record; until then nothing is oversold"
		if name := e.pod.Spec.SchedulerName; name != contract.SchedulerName && name != contract.GCUShareSchedulerName {
			text = fmt.Sprintf("Scheduler %s placed it, which knows nothing of cards: which one it holds is not known, room for it is set aside on the emptiest.", name)
			do = "make it anew with schedulerName: " + contract.SchedulerName + ", or wait for the node agent to record it"
		}
		if h.Overdue {
			text = fmt.Sprintf("It has been without a record for %s: node %s takes no new GCU pod for that.", since(e.options.Now, e.pod), h.Node)
			do = "kubectl gcu repair " + ref + ", or make the pod anew with schedulerName: gcu-scheduler"
		}
		e.find("Unrecorded", text, do)
		return
	}
	for _, c := range h.Charges() {
		card := Card{Node: h.Node, Minor: c.Minor, MiB: c.MiB, Whole: c.Whole}
		if i := n.Index(c.Minor); i >= 0 {
			at := &n.Cards[i]
			card.UUID, card.Model = at.UUID, at.Model
			switch {
			case at.Sick:
				e.find("CardSick", fmt.Sprintf("Card %d (%s) is unhealthy.", c.Minor, at.UUID), "kubectl gcu map "+h.Node+" tells the cause")
			case at.Swapped:
				e.find("CardSwapped", fmt.Sprintf("Card %d was exchanged under the pod.", c.Minor), "make the pod anew")
			}
		}
		e.out.Cards = append(e.out.Cards, card)
	}
	for _, p := range n.Problems {
		if p.Holder != nil && p.Holder.UID == h.UID && h.State == ledger.Bound {
			e.find("RecordContradicts", fmt.Sprintf("Its record contradicts node %s: %s.", h.Node, p.Text), "kubectl gcu repair "+ref)
		}
	}
}

func since(now time.Time, pod *v1.Pod) string {
	if t, ok := survey.BoundAt(pod); ok {
		return ago(now, t)
	}
	return "its start"
}

// ago is a span of time in one or two units.
func ago(now, then time.Time) string {
	d := max(now.Sub(then), 0).Round(time.Second)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
