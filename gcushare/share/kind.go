package share

import (
	"fmt"

	"github.com/topscloud/topscloud/internal/contract"
)

// Kind is one of the resources a container may ask for. A container asks for one kind only. Alias counts the
// same cards as Whole by another resource name: what one of them hands out, the other has no more.
type Kind uint8

// The kinds, in the order of Totals.
const (
	Whole  Kind = iota // whole cards
	Memory             // units of card memory
	Slices             // slices of a card
	Alias              // whole cards by their second name, where there is one
	Kinds  = 4
)

// Fractional says whether the kind is a part of a card.
func (k Kind) Fractional() bool { return k == Memory || k == Slices }

// String returns a word for messages.
func (k Kind) String() string {
	switch k {
	case Whole, Alias:
		return "cards"
	case Memory:
		return "memory units"
	case Slices:
		return "slices"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Resource returns the resource name of the kind, empty for Alias where there is none.
func (k Kind) Resource(names *contract.Names) string {
	switch k {
	case Memory:
		return names.ResourceMemory
	case Slices:
		return names.ResourceSlice
	case Alias:
		return names.ResourceAlias
	}
	return names.ResourceWhole
}

// Totals is an amount per kind.
type Totals [Kinds]int64

// Policy says whether shares are packed onto few cards or spread over many.
type Policy uint8

// The policies; Binpack is the default.
const (
	Binpack Policy = iota
	Spread
)

// Topology says how close the cards of one container must be.
type Topology uint8

// The wishes; BestEffort is the default. SameSwitch and SameNUMA are hard.
const (
	BestEffort Topology = iota
	SameSwitch
	SameNUMA
	AnyTopology
)

// Phase says when a container runs in its pod's life.
type Phase uint8

// The phases: an Init container runs alone (but for sidecars started before it), a Sidecar from its
// start to the pod's end, an App container after all init containers are done.
const (
	App Phase = iota
	Sidecar
	Init
)
