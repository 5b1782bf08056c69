package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/gcushare/share"
)

// Plugin answers kubelet about one of the resources.
type Plugin struct {
	arbiter  *Arbiter
	kind     share.Kind
	resource string
}

var _ kubelet.Plugin = (*Plugin)(nil)

// Plugin returns the plugin for a kind of request. An ID of it stands for one card, unit or slice, and
// for none in particular.
func (a *Arbiter) Plugin(kind share.Kind) *Plugin {
	return &Plugin{arbiter: a, kind: kind, resource: kind.Resource(a.o.Names)}
}

// Resource returns the resource's name.
func (p *Plugin) Resource() string { return p.resource }

// Allocate answers with a ticket. It decides nothing and never fails.
func (p *Plugin) Allocate(ctx context.Context, ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	name := p.arbiter.issue(ctx, p.resource, ids)
	klog.FromContext(ctx).V(2).Info("Ticket issued", "ticket", name, "devices", len(ids))
	p.arbiter.changed()
	out := &pluginapi.ContainerAllocateResponse{
		CdiDevices: []*pluginapi.CDIDevice{{Name: p.arbiter.tickets.qualified(name)}},
	}
	p.addDirect(out, ids)
	return out, nil
}

// PreStart makes the tickets of the containers that hold the IDs resolvable, each with the cards of its
// own entry in its pod's record.
func (p *Plugin) PreStart(ctx context.Context, ids []string) error {
	start := time.Now()
	var err error
	for {
		err = p.preStart(ctx, ids)
		var left *leavingError
		if !errors.As(err, &left) || !p.arbiter.waitUntilDead(ctx, left.uids, LeaveWithin-time.Since(start)) {
			break
		}
	}
	p.arbiter.changed()
	var r *Refusal
	if errors.As(err, &r) && p.arbiter.o.Refused != nil {
		p.arbiter.o.Refused(context.WithoutCancel(ctx), r)
	}
	return err
}

func (a *Arbiter) changed() {
	if a.o.Changed != nil {
		a.o.Changed()
	}
}

// waitUntilDead waits for the processes of pods to end and reports whether they have. There is no event for
// it that every kernel has, so it looks again and again.
func (a *Arbiter) waitUntilDead(ctx context.Context, uids []types.UID, atMost time.Duration) bool {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if !slices.ContainsFunc(uids, func(uid types.UID) bool { return a.alive(string(uid)) }) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return false
		case <-tick.C:
		}
	}
}

func (p *Plugin) preStart(ctx context.Context, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, RefuseAfter)
	defer cancel()
	uid, err := p.decide(ctx, ids)
	var r *Refusal
	if errors.As(err, &r) {
		r.UID = uid
	}
	return err
}

// decide returns the pod's UID where it became known.
func (p *Plugin) decide(ctx context.Context, ids []string) (types.UID, error) {
	a := p.arbiter
	ids = slices.Clone(ids)
	slices.Sort(ids)
	holders, err := a.o.Identities.Holders(ctx, p.resource, ids)
	if err != nil {
		return "", refuse(CauseIdentity, "", "", err)
	}
	first := holders[0]
	pod := a.o.Pods.Cached(first.PodUID)
	if first.PodUID != "" && pod != nil && pod.UID == first.PodUID {
		err = a.grant(ctx, p, pod, holders, ids)
		if !mayBeOld(err) {
			return first.PodUID, err
		}
	}
	// The cache may be behind: a pod that was just made, a record that was just mended.
	pod, readErr := a.o.Pods.Read(ctx, first.PodUID, first.Namespace, first.Name)
	if readErr != nil {
		if err != nil {
			return first.PodUID, err
		}
		return first.PodUID, refuse(CausePod, describe(first), first.Container, fmt.Errorf("read the pod: %w", readErr))
	}
	if first.PodUID != "" && pod.UID != first.PodUID {
		return first.PodUID, refuse(CausePod, describe(first), first.Container, fmt.Errorf("the pod of this name has UID %s: another pod", pod.UID))
	}
	err = a.grant(ctx, p, pod, holders, ids)
	var r *Refusal
	if !errors.As(err, &r) || r.Cause != CauseNoRecord || a.o.Adopt == nil {
		return pod.UID, err
	}
	adopted, adoptErr := a.o.Adopt(ctx, pod, p.resource, ids)
	if adoptErr != nil {
		return pod.UID, refuse(CauseNoRecord, podName(pod), first.Container, adoptErr)
	}
	return pod.UID, a.grant(ctx, p, adopted, holders, ids)
}

// mayBeOld says whether a refusal may be due to an old reading of the pod.
func mayBeOld(err error) bool {
	var r *Refusal
	if !errors.As(err, &r) {
		return false
	}
	switch r.Cause {
	case CauseNoRecord, CauseRecord, CauseSize, CauseCard, CauseChanged, CausePod:
		return true
	}
	return false
}

func describe(h kubelet.Holder) string {
	if h.PodUID != "" {
		return string(h.PodUID)
	}
	return h.Namespace + "/" + h.Name
}

// bound are the tickets of one container.
type bound struct {
	container string
	tickets   []string
}

// ticketsOf names the tickets of each holder. The checkpoint tells them; where it could not be read, the
// book is asked for those issued for these IDs that no other pod has.
func (a *Arbiter) ticketsOf(p *Plugin, pod *v1.Pod, holders []kubelet.Holder, ids []string, rec *record) ([]bound, error) {
	var out []bound
	for _, h := range holders {
		b := bound{container: h.Container}
		for _, qualified := range h.CDIDevices {
			if name, ok := a.tickets.nameOf(qualified); ok {
				b.tickets = append(b.tickets, name)
			}
		}
		if h.PodUID != "" && len(b.tickets) == 0 && p.direct() && a.noCDI() {
			b.tickets = a.issuedFor(p.resource, pod.UID, ids)
		}
		if h.PodUID != "" && len(b.tickets) == 0 {
			return nil, refuse(CauseTicket, podName(pod), h.Container, errors.New("kubelet has no ticket for it"))
		}
		out = append(out, b)
	}
	if holders[0].PodUID != "" {
		return out, nil
	}
	// Without the checkpoint an init container that lent its IDs cannot be told from the container that has
	// them now; it does not matter when all that could be meant get the same.
	meant := rec.cards[holders[0].Container]
	for name, c := range rec.asks {
		if c.Kind == p.kind && c.Amount == int64(len(ids)) && !slices.Equal(rec.cards[name], meant) &&
			(c.Phase == share.Init || slices.ContainsFunc(holders, func(h kubelet.Holder) bool { return h.Container == name })) {
			return nil, refuse(CauseIdentity, podName(pod), holders[0].Container,
				fmt.Errorf("kubelet's checkpoint cannot be read, and container %s could be meant as well", name))
		}
	}
	b := bound{container: holders[0].Container, tickets: a.issuedFor(p.resource, pod.UID, ids)}
	if len(b.tickets) == 0 {
		return nil, refuse(CauseTicket, podName(pod), b.container, errors.New("neither kubelet's checkpoint nor the node's book tells its ticket"))
	}
	return []bound{b}, nil
}

// issuedFor returns the tickets that the book has for these IDs and that no other pod has, sorted.
func (a *Arbiter) issuedFor(resource string, uid types.UID, ids []string) []string {
	var out []string
	for _, t := range a.book.read().Tickets {
		if t.Resource == resource && slices.Equal(t.IDs, ids) && (t.PodUID == "" || types.UID(t.PodUID) == uid) {
			out = append(out, t.Name)
		}
	}
	slices.Sort(out)
	return out
}
