package plugin

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// record is a pod's record after it was found to agree with the pod and with the machine.
type record struct {
	asks    map[string]share.Container
	cards   map[string][]contract.CardAllocation
	charges []contract.BookCharge
	// peak is charges while init containers run.
	peak []contract.BookCharge
}

// readRecord checks all that can be checked without knowing the other pods. A record may be written by
// whoever can write the pod, so nothing in it is believed beyond the container's own limit.
func (a *Arbiter) readRecord(pod *v1.Pod, m *Machine, devices map[int]eflib.Device) (*record, error) {
	name := podName(pod)
	switch {
	case pod.Spec.NodeName != a.o.Node:
		return nil, refuse(CausePod, name, "", fmt.Errorf("the pod is bound to node %q, this is %s", pod.Spec.NodeName, a.o.Node))
	case ledger.Ended(pod):
		return nil, refuse(CausePod, name, "", errors.New("the pod has ended"))
	}
	limits, _, err := share.Limits(a.o.Names, pod)
	if err != nil {
		return nil, refuse(CauseRecord, name, "", err)
	}
	h := ledger.ReadHolder(a.o.Names, pod)
	switch h.State {
	case ledger.Bound:
	case ledger.Unrecorded:
		return nil, refuse(CauseNoRecord, name, "", fmt.Errorf("no annotation %s; was the pod placed by another scheduler?", a.o.Names.AllocationKey))
	default:
		return nil, refuse(CauseRecord, name, "", errors.New(h.Problem))
	}
	out := &record{asks: map[string]share.Container{}, cards: map[string][]contract.CardAllocation{}}
	for _, c := range limits {
		out.asks[c.Name] = c
	}
	for _, c := range h.Containers {
		asks := out.asks[c.Name] // it is there: the record was matched with the limits
		if err := checkContainer(&asks, c.Cards, m, devices); err != nil {
			var r *Refusal
			if errors.As(err, &r) {
				r.Pod, r.Container = name, c.Name
			}
			return nil, err
		}
		out.cards[c.Name] = c.Cards
	}
	out.charges, out.peak = bookCharges(h, h.Charges()), bookCharges(h, h.PeakCharges())
	return out, nil
}

// bookCharges returns charges of a holder as they are booked.
func bookCharges(h *ledger.Holder, charges []share.Charge) []contract.BookCharge {
	uuids := map[int]string{}
	for _, c := range h.Containers {
		for _, card := range c.Cards {
			uuids[card.Minor] = contract.NormalUUID(card.UUID)
		}
	}
	var out []contract.BookCharge
	for _, c := range charges {
		out = append(out, contract.BookCharge{Minor: c.Minor, UUID: uuids[c.Minor], MemoryMiB: c.MiB, Whole: c.Whole})
	}
	return out
}

// checkContainer compares what a record gives a container with its limit and the machine.
func checkContainer(asks *share.Container, cards []contract.CardAllocation, m *Machine, devices map[int]eflib.Device) error {
	refused := func(cause Cause, format string, args ...any) error {
		return &Refusal{Cause: cause, Err: fmt.Errorf(format, args...)}
	}
	count := int64(len(cards))
	if asks.Kind.Fractional() && asks.Amount%count != 0 {
		return refused(CauseSize, "its limit of %d does not spread over the %d cards of the record", asks.Amount, count)
	}
	spread := *asks
	spread.Cards = len(cards)
	for _, card := range cards {
		d, ok := devices[card.Minor]
		switch {
		case !ok:
			return refused(CauseCard, "the record names card %d, which is not on this node", card.Minor)
		case contract.NormalUUID(card.UUID) != contract.NormalUUID(d.UUID):
			return refused(CauseCard, "the record names card %d as %s, the card there is %s", card.Minor, card.UUID, d.UUID)
		}
		if want := spread.PerCardMiB(d.MemoryMiB, m.UnitMiB, m.SliceCount); card.MemoryMiB != want {
			return refused(CauseSize, "the record gives %d MiB of card %d, the container's own limit is %d MiB", card.MemoryMiB, card.Minor, want)
		}
	}
	return nil
}
