package ledger

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// State is how sure a holder is.
type State uint8

// The states of a holder.
const (
	InFlight   State = iota // assumed; its Binding is not yet seen in the API
	Doubtful                // its Binding was sent and the answer is unknown
	Bound                   // seen in the API with its record
	Unrecorded              // seen in the API without a record
	Unreadable              // seen in the API with a record that cannot be used
)

var stateNames = [...]string{"in flight", "doubtful", "bound", "unrecorded", "unreadable"}

// String returns the state in words.
func (s State) String() string { return stateNames[s] }

// Holder is a pod that holds something of a node's cards. It is immutable.
type Holder struct {
	UID             types.UID
	Namespace, Name string
	Node            string
	State           State
	// Problem says what is wrong with an Unreadable holder's record.
	Problem string
	// Overdue is an Unrecorded holder whose record should have come by now.
	Overdue bool
	// Initialized says that the pod's init containers are done.
	Initialized bool
	Priority    int32
	// Totals is what kubelet counts for the pod.
	Totals share.Totals
	// Containers is the record.
	Containers []contract.ContainerAllocation
	// BindVersion is the pod's resourceVersion that the Binding named as its precondition.
	BindVersion string

	version string // resourceVersion of the pod this was read from
	holds   []share.Hold
	charges []share.Charge
	// request is what an unrecorded pod asks, for the room set aside for it.
	request *share.Request
	// want are the cards that room is set aside on, where they are known.
	want []share.Hold
	// limits are what the pod's containers ask for, to hold a record against.
	limits []share.Container
}

// Plan makes the holder that a pod becomes when its containers get the cards of a record on a node.
func Plan(pod *v1.Pod, node string, req *share.Request, record []contract.ContainerAllocation) *Holder {
	h := planned(pod, node, req)
	h.State, h.Containers = InFlight, record
	h.holds = holdsOf(req.Containers, record)
	h.recharge()
	return h
}

// Claim makes the holder of a pod whose cards on a node nobody chose yet, for example one that was
// nominated to the node and waits for its victims to go: room is set aside for it, as much as there is.
func Claim(pod *v1.Pod, node string, req *share.Request) *Holder {
	h := planned(pod, node, req)
	h.State, h.request = Unrecorded, req
	return h
}

// ClaimOn is Claim for a pod whose cards are known already, though others still hold of them: what is
// free of those cards is set aside.
func ClaimOn(pod *v1.Pod, node string, req *share.Request, record []contract.ContainerAllocation) *Holder {
	h := Claim(pod, node, req)
	h.want = holdsOf(req.Containers, record)
	return h
}

func planned(pod *v1.Pod, node string, req *share.Request) *Holder {
	h := &Holder{
		UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Node: node,
		Totals: req.Totals, BindVersion: pod.ResourceVersion, version: pod.ResourceVersion,
	}
	if pod.Spec.Priority != nil {
		h.Priority = *pod.Spec.Priority
	}
	return h
}

// Charges is what the pod holds on each card, by its record. An unrecorded pod has none here: what is
// set aside for it is the node's.
func (h *Holder) Charges() []share.Charge { return h.charges }

// PeakCharges is what the pod holds while its init containers run, whether or not they have ended.
func (h *Holder) PeakCharges() []share.Charge { return share.Charges(h.holds, false) }

// recorded says whether the holder's cards are known.
func (h *Holder) recorded() bool {
	return h.State == InFlight || h.State == Doubtful || h.State == Bound
}

func (h *Holder) recharge() {
	h.charges = share.Charges(h.holds, h.Initialized)
}

// holdsOf joins a record with what its containers are, in start order.
func holdsOf(limits []share.Container, record []contract.ContainerAllocation) []share.Hold {
	var out []share.Hold
	for i := range limits {
		for _, a := range record {
			if a.Name != limits[i].Name {
				continue
			}
			for _, c := range a.Cards {
				out = append(out, share.Hold{Phase: limits[i].Phase, Minor: c.Minor, MiB: c.MemoryMiB, Whole: c.Whole})
			}
		}
	}
	return out
}

func byUID(h *Holder, uid types.UID) int { return cmp.Compare(h.UID, uid) }

func insertHolder(list []*Holder, h *Holder) []*Holder {
	i, found := slices.BinarySearchFunc(list, h.UID, byUID)
	if found {
		list[i] = h
		return list
	}
	return slices.Insert(list, i, h)
}

func removeHolder(list []*Holder, uid types.UID) []*Holder {
	if i, found := slices.BinarySearchFunc(list, uid, byUID); found {
		return slices.Delete(list, i, i+1)
	}
	return list
}
