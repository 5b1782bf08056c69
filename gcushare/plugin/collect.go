package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/deviceplugin/kubelet/checkpoint"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// issueTime is longer than kubelet takes from our answer to its checkpoint.
const issueTime = time.Minute

// Collect drops the pods that are gone, the tickets of containers that never started and files of
// tickets that nobody has. It reports what it could not look up.
func (a *Arbiter) Collect(ctx context.Context) error {
	gone, errs := a.goneOf(ctx, a.book.read().Pods)
	err := errors.Join(errs, a.dropPods(gone))
	file, readErr := a.o.Checkpoints.Read()
	if readErr != nil && !checkpoint.Missing(readErr) {
		return errors.Join(err, fmt.Errorf("tickets are kept: %w", readErr))
	}
	kept := a.keptByKubelet(ctx, file)
	old := time.Now().Add(-issueTime)
	var names []string
	err = errors.Join(err, a.book.update(func(b *contract.Book) (bool, error) {
		b.Tickets = slices.DeleteFunc(b.Tickets, func(t contract.BookTicket) bool {
			dead := t.PodUID == "" && t.Issued.Before(old) && !kept[t.Name]
			if dead {
				names = append(names, t.Name)
			}
			return dead
		})
		return len(names) > 0, nil
	}))
	return errors.Join(err, a.tickets.remove(names), a.removeStrays(kept))
}

// keptByKubelet returns the tickets in the checkpoint whose pods may still start them. Kubelet names pods
// that are gone until it writes the file again.
func (a *Arbiter) keptByKubelet(ctx context.Context, file *checkpoint.Checkpoint) map[string]bool {
	kept := map[string]bool{}
	if file == nil {
		return kept
	}
	alive := map[string]bool{}
	for i := range file.Entries {
		e := &file.Entries[i]
		for _, qualified := range e.CDIDevices() {
			name, ours := a.tickets.nameOf(qualified)
			if !ours {
				continue
			}
			if _, asked := alive[e.PodUID]; !asked {
				gone, _ := a.goneOf(ctx, []contract.BookPod{{UID: e.PodUID}}) // unknown is not gone
				alive[e.PodUID] = !gone[e.PodUID]
			}
			kept[name] = alive[e.PodUID]
		}
	}
	return kept
}

// removeStrays removes files of tickets that are neither in the book nor kept.
func (a *Arbiter) removeStrays(kept map[string]bool) error {
	files, err := a.tickets.files()
	if err != nil {
		return err
	}
	state := a.book.read()
	files = slices.DeleteFunc(files, func(name string) bool { return kept[name] || ticketAt(&state, name) >= 0 })
	return a.tickets.remove(files)
}

// Restore makes book and files what they should be after a restart: pods that kubelet has given tickets are
// booked by their records, and each ticket that a container was given has its file. A pod for which that
// fails does not stop the others; its containers are refused when they start.
func (a *Arbiter) Restore(ctx context.Context) error {
	var errs []error
	m := a.o.Machine()
	devices := m.devicesByMinor()
	for _, t := range a.book.read().Tickets {
		if t.PodUID == "" {
			continue
		}
		if err := a.tickets.write(t.Name, t.Cards, devices); err != nil {
			errs = append(errs, fmt.Errorf("ticket %s of container %s: %w", t.Name, t.Container, err))
		}
	}
	file, err := a.o.Checkpoints.Read()
	switch {
	case checkpoint.Missing(err):
		return errors.Join(errs...)
	case err != nil:
		return errors.Join(append(errs, err)...)
	}
	for kind := share.Kind(0); kind < share.Kinds; kind++ {
		p := a.Plugin(kind)
		if p.resource == "" {
			continue
		}
		for i := range file.Entries {
			e := &file.Entries[i]
			if e.Resource != p.resource || e.Err != nil {
				continue
			}
			errs = append(errs, a.restore(ctx, p, e))
		}
	}
	return errors.Join(errs...)
}

// restore grants one entry of the checkpoint if its pod still exists.
func (a *Arbiter) restore(ctx context.Context, p *Plugin, e *checkpoint.Entry) error {
	pod := a.o.Pods.Cached(types.UID(e.PodUID))
	if pod == nil {
		gone, err := a.goneOf(ctx, []contract.BookPod{{UID: e.PodUID}})
		if err != nil || gone[e.PodUID] {
			return err
		}
		if pod, err = a.o.Pods.Read(ctx, types.UID(e.PodUID), "", ""); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, RefuseAfter)
	defer cancel()
	return a.grant(ctx, p, pod, []kubelet.Holder{{
		PodUID: types.UID(e.PodUID), Container: e.Container, CDIDevices: e.CDIDevices(),
	}}, e.IDs)
}
