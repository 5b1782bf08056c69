package gcumap

import (
	"time"
)

// The version and kind of a Map in JSON and YAML.
const (
	APIVersion = "gcu.topscloud.dev/v1"
	Kind       = "Map"
)

// Map is a cluster's cards and their holders at one moment. Amounts of memory are in MiB.
type Map struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Incomplete says what could not be seen, one sentence each. When it is not empty, memory in use
	// and holders are lower bounds, and a card called free may be held.
	Incomplete []string `json:"incomplete,omitempty"`
	// Nodes are those with cards, with holders or asked for by name, sorted by name.
	Nodes  []Node `json:"nodes"`
	Totals Totals `json:"totals"`
	// OtherNodes counts the nodes without GCU, which are not in Nodes.
	OtherNodes int `json:"otherNodes"`
	// WaitingPods counts the pods that ask for GCU and are on no node yet. It is 0 when nodes were
	// asked for by name.
	WaitingPods int `json:"waitingPods"`
}

// Node is one node.
type Node struct {
	Name string `json:"name"`
	// Absent says that the Node object is not there or may not be read: the node is known only from
	// pods that are bound to it.
	Absent bool `json:"absent,omitempty"`
	// Ready and Schedulable are what the node says of itself, GCU or not.
	Ready       bool `json:"ready"`
	Schedulable bool `json:"schedulable"`
	// Sharing says that the node lends parts of its cards.
	Sharing       bool  `json:"sharing"`
	MemoryUnitMiB int64 `json:"memoryUnitMiB"`
	SliceCount    int64 `json:"sliceCount"`
	// Registered says that kubelet offers the node's cards, which it does while the node's agent runs.
	Registered bool `json:"registered"`
	// Closed is set when the node takes no new holder at all.
	Closed *Closed `json:"closed,omitempty"`
	// Groups is how the cards are wired: NUMA nodes, in them root complexes and switches. Places at
	// which no two cards meet are left out.
	Groups []Group `json:"groups"`
	// Cards are sorted by minor.
	Cards []Card `json:"cards"`
	// Elsewhere are holders whose cards are unknown or not among Cards.
	Elsewhere []Holder `json:"elsewhere,omitempty"`
	Totals    Totals   `json:"totals"`
}

// Closed is why a node takes no new holder. Reason is one word for programs: NoGCU, BadDevices,
// BadRecord, MissingRecord, Overcommitted or CordonUnread.
type Closed struct {
	Reason   string    `json:"reason"`
	Message  string    `json:"message"`
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is one of the causes that keep a node closed. Namespace and Name are those of the pod to
// look at, empty when it is the node itself.
type Problem struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	Message   string `json:"message"`
}

// GroupKind is what cards of a group have in common.
type GroupKind string

// The kinds of groups, outermost first. Switches may be nested.
const (
	NUMA        GroupKind = "numa"
	RootComplex GroupKind = "rootComplex"
	Switch      GroupKind = "switch"
)

// Group is a place in a node where cards meet.
type Group struct {
	Kind GroupKind `json:"kind"`
	// Name is the NUMA node's number, empty where it is not known, or the PCI name of the root complex
	// ("pci0000:0c") or of the switch ("0000:0d:00.0").
	Name string `json:"name"`
	// Minors are the cards directly in the group, those of Groups left out.
	Minors []int   `json:"minors,omitempty"`
	Groups []Group `json:"groups,omitempty"`
}

// State is one word for a card. Where several hold, the first of sick, swapped, whole, shared,
// cordoned, free.
type State string

// The states of a card.
const (
	Sick     State = "sick"     // unhealthy or gone
	Swapped  State = "swapped"  // exchanged while the former card had holders
	Whole    State = "whole"    // one pod has all of it
	Shared   State = "shared"   // pods have parts of it
	Cordoned State = "cordoned" // nobody holds it and an administrator closed it
	Free     State = "free"
)

// Card is one card.
type Card struct {
	Minor    int    `json:"minor"`
	UUID     string `json:"uuid"`
	Model    string `json:"model"`
	PCIBusID string `json:"pciBusID,omitempty"`
	// NUMA is -1 when unknown.
	NUMA  int   `json:"numa"`
	State State `json:"state"`
	// Sick is the cause, in words, of a card that is not healthy.
	Sick string `json:"sick,omitempty"`
	// Cordon is set on a card that is closed for new holders, held or not.
	Cordon   *Cordon `json:"cordon,omitempty"`
	Swapped  bool    `json:"swapped,omitempty"`
	TotalMiB int64   `json:"totalMiB"`
	UsedMiB  int64   `json:"usedMiB"`
	// FreeMiB, FreeUnits and FreeSlices are what a new share could take; 0 on a card that takes none.
	FreeMiB    int64    `json:"freeMiB"`
	FreeUnits  int64    `json:"freeUnits"`
	FreeSlices int64    `json:"freeSlices"`
	Holders    []Holder `json:"holders,omitempty"`
}

// Cordon says why a card is closed and until when.
type Cordon struct {
	Reason string     `json:"reason,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
}

// Holder is a pod and what it holds of one card, or of cards that are not known.
type Holder struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// State is bound for a pod with a record. unrecorded: room is set aside until its record comes;
	// unreadable: its record cannot be used; in flight, doubtful: being bound.
	State string `json:"state"`
	// Overdue is an unrecorded pod whose record should have come by now; it closes the node.
	Overdue bool `json:"overdue,omitempty"`
	// Leaving is a pod that is being deleted and still holds.
	Leaving bool `json:"leaving,omitempty"`
	// Minor is set in Elsewhere when the record names a card that the node does not have.
	Minor *int `json:"minor,omitempty"`
	// MiB is what the pod holds of the card now: while its init containers run the most any phase
	// takes, then what the others take together.
	MiB   int64 `json:"mib"`
	Whole bool  `json:"whole,omitempty"`
	// Containers are those that have a part in it; finished init containers are left out.
	Containers []Container `json:"containers,omitempty"`
}

// Container is one container's part in a holding.
type Container struct {
	Name string `json:"name"`
	// Phase is app, sidecar or init.
	Phase string `json:"phase"`
	// Resource is what the container asks for, Amount how much of it, over all of its Cards.
	Resource string `json:"resource"`
	Amount   int64  `json:"amount"`
	Cards    int    `json:"cards"`
	// MiB is its part of this card by the pod's record; 0 without one.
	MiB int64 `json:"mib,omitempty"`
}

// Totals counts the cards of a node or a cluster by state, each card once, and their memory.
type Totals struct {
	Nodes    int `json:"nodes"`
	Cards    int `json:"cards"`
	Free     int `json:"free"`
	Shared   int `json:"shared"`
	Whole    int `json:"whole"`
	Sick     int `json:"sick"`
	Cordoned int `json:"cordoned"`
	Swapped  int `json:"swapped"`
	// TotalMiB is the memory of all cards, PromisedMiB what of it is held.
	TotalMiB    int64 `json:"totalMiB"`
	PromisedMiB int64 `json:"promisedMiB"`
}
