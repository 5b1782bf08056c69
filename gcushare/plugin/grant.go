package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// grant gives holders, all of one pod, the cards of the pod's record: into the book first, then as files.
func (a *Arbiter) grant(ctx context.Context, p *Plugin, pod *v1.Pod, holders []kubelet.Holder, ids []string) error {
	m := a.o.Machine()
	devices := m.devicesByMinor()
	rec, err := a.readRecord(pod, &m, devices)
	if err != nil {
		return named(err, holders[0].Container)
	}
	for _, h := range holders {
		asks, ok := rec.asks[h.Container]
		switch {
		case !ok || asks.Kind != p.kind:
			return refuse(CauseRecord, podName(pod), h.Container, fmt.Errorf("it does not ask for %s", p.resource))
		case asks.Amount != int64(len(ids)):
			return refuse(CauseSize, podName(pod), h.Container, fmt.Errorf("kubelet gave it %d of %s, its limit is %d", len(ids), p.resource, asks.Amount))
		}
	}
	if p.direct() {
		for _, h := range holders {
			if err := sameAsIDs(rec.cards[h.Container], ids); err != nil {
				return refuse(CauseCard, podName(pod), h.Container, err)
			}
		}
	}
	if startsAgain(pod, holders, rec) {
		rec.charges = rec.peak
	}
	containers, err := a.ticketsOf(p, pod, holders, ids, rec)
	if err != nil {
		return err
	}
	a.step("PreStart: before the book")
	if err := a.enter(ctx, p.resource, pod, rec, containers, ids, &m); err != nil {
		return named(refuse(CauseTicket, podName(pod), holders[0].Container, err), holders[0].Container)
	}
	var names []string
	for _, c := range containers {
		for _, name := range c.tickets {
			a.step("PreStart: before a ticket's file")
			if err := a.tickets.write(name, rec.cards[c.container], devices); err != nil {
				return refuse(CauseTicket, podName(pod), c.container, err)
			}
			names = append(names, name)
		}
	}
	a.step("PreStart: after the files")
	if err := a.tickets.resolve(ctx, names); err != nil {
		return refuse(CauseTicket, podName(pod), holders[0].Container, err)
	}
	klog.FromContext(ctx).V(2).Info("Cards given", "pod", klog.KObj(pod), "container", holders[0].Container, "cards", len(rec.cards[holders[0].Container]))
	a.step("PreStart: before the pod is marked")
	if a.o.Assigned != nil && a.complete(pod.UID, rec) {
		a.o.Assigned(ctx, pod)
	}
	a.step("PreStart: before the answer")
	return nil
}

// startsAgain says whether it is an init container that starts in a pod whose init containers have ended: its sandbox
// was made anew, and everything runs once more. The pod stays initialized meanwhile, so the room that only its init
// containers need may be another pod's by now, and the container waits for it.
//
// If an app container has the same IDs nobody can tell which of the two starts. It is taken for the app container,
// which must not wait for room that it does not need.
func startsAgain(pod *v1.Pod, holders []kubelet.Holder, rec *record) bool {
	return ledger.Initialized(pod) && !slices.ContainsFunc(holders, func(h kubelet.Holder) bool {
		return rec.asks[h.Container].Phase != share.Init
	})
}

// named adds a container to a refusal that is about the pod as a whole: the user sees it at a container.
func named(err error, container string) error {
	var r *Refusal
	if errors.As(err, &r) && r.Container == "" {
		r.Container = container
	}
	return err
}

// enter books the pod's charges and the tickets of its containers. Pods of the book that stand in the way
// are looked up first: the book hears late of pods that are gone.
func (a *Arbiter) enter(ctx context.Context, resource string, pod *v1.Pod, rec *record, containers []bound, ids []string, m *Machine) error {
	for {
		err := a.book.update(func(b *contract.Book) (bool, error) {
			return enter(b, resource, pod, rec, containers, ids, m)
		})
		var room *roomError
		if !errors.As(err, &room) {
			return err
		}
		gone, goneErr := a.goneOf(ctx, room.others)
		if len(gone) == 0 {
			lighter, err2 := a.lighten(ctx, room.others)
			if err2 != nil {
				return err2
			}
			if lighter {
				continue
			}
			cause := CauseRoom
			if left := a.leaving(ctx, room.others); len(left) > 0 {
				cause, err = CauseLeaving, &leavingError{err, left}
			}
			return &Refusal{Cause: cause, Pod: podName(pod), Container: containers[0].container, Err: errors.Join(err, goneErr)}
		}
		if err := a.dropPods(gone); err != nil {
			return err
		}
	}
}

// lighten books what pods hold now where that is less than what is booked: init containers that asked for
// more than what runs later have ended since. It reports whether anything changed.
func (a *Arbiter) lighten(ctx context.Context, pods []contract.BookPod) (changed bool, err error) {
	now := map[string][]contract.BookCharge{}
	for _, p := range pods {
		pod, err := a.o.Pods.Read(ctx, types.UID(p.UID), p.Namespace, p.Name)
		if err != nil || string(pod.UID) != p.UID {
			continue // what is booked stays
		}
		if h := ledger.ReadHolder(a.o.Names, pod); h.State == ledger.Bound {
			now[p.UID] = bookCharges(h, h.Charges())
		}
	}
	err = a.book.update(func(b *contract.Book) (bool, error) {
		for i := range b.Pods {
			p := &b.Pods[i]
			if charges, ok := now[p.UID]; ok && lighter(charges, p.Charges) {
				p.Charges, changed = charges, true
			}
		}
		return changed, nil
	})
	return changed, err
}

// lighter says whether a is no more than b on any card, and less on some.
func lighter(a, b []contract.BookCharge) bool {
	uuids := map[int]string{}
	for _, c := range b {
		uuids[c.Minor] = c.UUID
	}
	other := slices.ContainsFunc(a, func(c contract.BookCharge) bool { return uuids[c.Minor] != c.UUID })
	return !other && share.Lighter(chargesOf(a), chargesOf(b))
}

func chargesOf(booked []contract.BookCharge) []share.Charge {
	var out []share.Charge
	for _, c := range booked {
		out = append(out, share.Charge{Minor: c.Minor, MiB: c.MemoryMiB, Whole: c.Whole})
	}
	return out
}

func enter(b *contract.Book, resource string, pod *v1.Pod, rec *record, containers []bound, ids []string, m *Machine) (bool, error) {
	memory := map[int]int64{}
	for _, d := range m.Devices {
		memory[d.Minor] = d.MemoryMiB
	}
	changed, err := charge(b, contract.BookPod{
		UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Charges: rec.charges,
	}, memory)
	if err != nil {
		return false, err
	}
	for _, c := range containers {
		for _, name := range c.tickets {
			at := ticketAt(b, name)
			if at < 0 { // a book that was lost, or could not be written at the time
				b.Tickets = append(b.Tickets, contract.BookTicket{Name: name, Resource: resource, IDs: ids})
				at = len(b.Tickets) - 1
			}
			t := &b.Tickets[at]
			switch {
			case t.PodUID == "":
				t.PodUID, t.Container, t.Cards = string(pod.UID), c.container, rec.cards[c.container]
				changed = true
			case types.UID(t.PodUID) != pod.UID:
				return false, refuse(CauseTicket, podName(pod), c.container, fmt.Errorf("ticket %s is another pod's", name))
			case !slices.Equal(t.Cards, rec.cards[c.container]):
				return false, refuse(CauseChanged, podName(pod), c.container,
					fmt.Errorf("it was given %s before, the record says %s now", cardsText(t.Cards), cardsText(rec.cards[c.container])))
			}
		}
	}
	return changed, nil
}

func cardsText(cards []contract.CardAllocation) string {
	out := ""
	for i, c := range cards {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprintf("%d MiB of card %d", c.MemoryMiB, c.Minor)
	}
	return out
}

// complete says whether every container of a pod that asks for cards has been given them.
func (a *Arbiter) complete(uid types.UID, rec *record) bool {
	has := map[string]bool{}
	for _, t := range a.book.read().Tickets {
		if types.UID(t.PodUID) == uid {
			has[t.Container] = true
		}
	}
	for name := range rec.asks {
		if !has[name] {
			return false
		}
	}
	return true
}

// leavingError is a card that has no room because of pods that are gone and whose processes are not.
type leavingError struct {
	error
	uids []types.UID
}

func (e *leavingError) Unwrap() error { return e.error }

func (e *leavingError) Error() string {
	return e.error.Error() + ", whose processes have not ended"
}

// leaving returns the pods that the API server does not have any more and whose processes still run.
func (a *Arbiter) leaving(ctx context.Context, pods []contract.BookPod) []types.UID {
	gone, _ := a.goneInAPI(ctx, pods) // unknown is not gone
	var out []types.UID
	for _, p := range pods {
		if gone[p.UID] && a.alive(p.UID) {
			out = append(out, types.UID(p.UID))
		}
	}
	return out
}

func (a *Arbiter) alive(uid string) bool { return a.o.Alive != nil && a.o.Alive(types.UID(uid)) }

// goneOf returns the UIDs of those pods that hold nothing any more. One that cannot be read is not gone,
// nor is one whose processes still run.
func (a *Arbiter) goneOf(ctx context.Context, pods []contract.BookPod) (map[string]bool, error) {
	gone, err := a.goneInAPI(ctx, pods)
	maps.DeleteFunc(gone, func(uid string, _ bool) bool { return a.alive(uid) })
	return gone, err
}

// goneInAPI is goneOf by what the API server says alone.
func (a *Arbiter) goneInAPI(ctx context.Context, pods []contract.BookPod) (map[string]bool, error) {
	gone := map[string]bool{}
	var errs []error
	for _, p := range pods {
		pod := a.o.Pods.Cached(types.UID(p.UID))
		if pod == nil {
			var err error
			pod, err = a.o.Pods.Read(ctx, types.UID(p.UID), p.Namespace, p.Name)
			switch {
			case apierrors.IsNotFound(err):
				gone[p.UID] = true
				continue
			case err != nil:
				errs = append(errs, fmt.Errorf("read pod %s/%s: %w", p.Namespace, p.Name, err))
				continue
			}
		}
		if string(pod.UID) != p.UID || ledger.Ended(pod) {
			gone[p.UID] = true
		}
	}
	return gone, errors.Join(errs...)
}

// dropPods takes pods out of the book and removes the files of their tickets.
func (a *Arbiter) dropPods(gone map[string]bool) error {
	var names []string
	err := a.book.update(func(b *contract.Book) (bool, error) {
		before := len(b.Pods)
		names = drop(b, gone)
		return len(b.Pods) != before, nil
	})
	if err != nil {
		return err
	}
	a.step("Collect: between book and files")
	return a.tickets.remove(names)
}
