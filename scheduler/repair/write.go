package repair

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/screen"
)

// May asks the API server whether the caller may write records, so that nobody is asked to confirm what
// will be refused. The admission policy asks the same question.
func May(ctx context.Context, client kubernetes.Interface, namespace string) error {
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authv1.SelfSubjectAccessReview{
		Spec: authv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authv1.ResourceAttributes{
			Namespace: namespace, Group: "topscloud.dev", Resource: "gcurecords", Verb: "write-records",
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask for the right to write records: %w", err)
	}
	if !review.Status.Allowed {
		return fmt.Errorf("you may not write GCU records in namespace %s: ask an administrator who holds ClusterRole gcu-admin "+
			"(verb write-records on gcurecords.topscloud.dev)", namespace)
	}
	return nil
}

// Write stores a proposal and leaves an event on the pod. warning is set when the record was stored and
// the event was not.
func Write(ctx context.Context, client kubernetes.Interface, names *contract.Names, p *Proposal, now time.Time) (warning, err error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": p.pod.UID, "resourceVersion": p.pod.ResourceVersion, "annotations": p.annotations(names),
	}})
	if err != nil {
		return nil, fmt.Errorf("patch of pod %s: %w", p.Pod, err)
	}
	_, err = client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Pod, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case apierrors.IsConflict(err):
		return nil, fmt.Errorf("pod %s changed since it was read, so nothing was written; try again: %w", p.Pod, err)
	case err != nil:
		return nil, fmt.Errorf("write the record of pod %s: %w", p.Pod, err)
	}
	p.Written = true
	if _, err = client.EventsV1().Events(p.Namespace).Create(ctx, p.event(now), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("the record was written, but no event could be left: %w", err), nil
	}
	return nil, nil
}

// annotations sets the record, and keeps the older keys from contradicting it: the card is corrected where
// all sharing containers are on one, else they go.
func (p *Proposal) annotations(names *contract.Names) map[string]any {
	out := map[string]any{names.AllocationKey: nil}
	if p.New != "" {
		out[names.AllocationKey] = p.New
	}
	older := []string{names.RequestSizeKey, names.AssignedMinorKey, names.AssignedKey, names.AssignedTimeKey, contract.AssignedContainersKey}
	minor := p.sharedCard()
	for _, key := range older {
		switch _, there := p.pod.Annotations[key]; {
		case !there:
		case minor < 0:
			out[key] = nil
		case key == names.AssignedMinorKey:
			out[key] = strconv.Itoa(minor)
		}
	}
	return out
}

// sharedCard is the one card that all sharing containers are on, -1 if there is none.
func (p *Proposal) sharedCard() int {
	minor := -1
	for _, c := range p.Containers {
		for _, card := range c.Cards {
			if card.Whole {
				continue
			}
			if minor >= 0 && minor != card.Minor {
				return -1
			}
			minor = card.Minor
		}
	}
	return minor
}

func (p *Proposal) event(now time.Time) *eventsv1.Event {
	e := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: p.Namespace, Name: fmt.Sprintf("%s.%x", p.Pod, now.UnixNano())},
		EventTime:           metav1.NewMicroTime(now),
		ReportingController: "topscloud.dev/kubectl-gcu", ReportingInstance: "kubectl-gcu",
		Type: v1.EventTypeNormal, Reason: "GCURecordRepaired", Action: "Repair",
		Regarding: v1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Pod, UID: p.pod.UID},
		Related:   &v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: p.Node},
		Note:      clip("The GCU record was corrected by an administrator: " + p.summary() + ". Before: " + p.Problem),
	}
	if p.New == "" {
		e.Reason, e.Action = "GCURecordCleared", "Clear"
		e.Note = clip("The GCU record was taken away by an administrator; the pod counts as unrecorded. Before: " + p.Problem)
	}
	return e
}

// clip keeps a note below the API server's limit of 1024 bytes.
func clip(note string) string {
	if len(note) > 1000 {
		return note[:1000] + "…"
	}
	return note
}

func (p *Proposal) summary() string {
	var parts []string
	for _, c := range p.Containers {
		var cards []string
		for _, card := range c.Cards {
			cards = append(cards, card.text())
		}
		parts = append(parts, c.Name+" on "+strings.Join(cards, ", "))
	}
	return strings.Join(parts, "; ")
}

func (c *Card) text() string {
	if c.Whole {
		return fmt.Sprintf("card %d whole", c.Minor)
	}
	return fmt.Sprintf("card %d %d MiB", c.Minor, c.MiB)
}

// Draw shows what would change.
func Draw(p *Proposal) *screen.Page {
	page := &screen.Page{}
	page.Line(screen.Strong, fmt.Sprintf("pod %s/%s on %s", p.Namespace, p.Pod, p.Node))
	if p.Problem != "" {
		page.Item("  now:  ", screen.Bad, p.Problem)
	}
	if p.New == "" {
		page.Item("  then: ", screen.Warn, "no record. The pod counts as unrecorded: room for it is set aside by guess, "+
			"and the node closes again unless its agent writes a record within the scheduler's record timeout.")
	}
	for _, c := range p.Containers {
		var cards []string
		for _, card := range c.Cards {
			cards = append(cards, fmt.Sprintf("%s (%s)", card.text(), card.UUID))
		}
		page.Item("  then: ", screen.Good, fmt.Sprintf("container %s on %s", c.Name, strings.Join(cards, ", ")))
		page.Item("        ", screen.Faint, "known from: "+c.Source)
	}
	for _, old := range []struct{ mark, text string }{{"- ", p.Old}, {"+ ", p.New}} {
		if old.text != "" {
			page.Item(old.mark, screen.Faint, old.text)
		}
	}
	for _, text := range p.Remains {
		page.Item("! ", screen.Warn, "the node stays closed for another reason: "+text)
	}
	return page
}
