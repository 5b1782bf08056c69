package nodebook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// Version is the version of Book this release writes and reads.
const Version = "v1"

// The kinds of holdings.
const (
	Whole  = "whole"  // the container has the card alone
	Memory = "memory" // it has a share, asked for in memory
	Slices = "slices" // it has a share, asked for in slices
)

// Book is who holds what on one node.
type Book struct {
	Version string `json:"version"`
	Node    string `json:"node"`
	// MemoryUnitMiB and SliceCount are what a unit and a slice of a card are.
	MemoryUnitMiB int64 `json:"memoryUnitMiB"`
	SliceCount    int64 `json:"sliceCount"`
	// MemoryEnforced says whether the memory of a share is enforced; else a container may use more.
	MemoryEnforced bool `json:"memoryEnforced"`
	// Holdings are sorted by card, pod and container.
	Holdings []Holding `json:"holdings"`
}

// Holding is what one container has of one card.
type Holding struct {
	Minor int    `json:"minor"`
	UUID  string `json:"uuid"`
	// PCIBusID is where the card with that uuid is now; empty where the agent does not see it there, and in the books
	// of older agents.
	PCIBusID  string `json:"pciBusID,omitempty"`
	PodUID    string `json:"podUID"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container"`
	// Resource is what the container asked for.
	Resource string `json:"resource"`
	// Kind is Whole, Memory or Slices.
	Kind string `json:"kind"`
	// MemoryMiB is the share; of a whole card, the card's memory.
	MemoryMiB int64 `json:"memoryMiB"`
}

// Sort puts holdings into the order they are told in.
func Sort(list []Holding) {
	slices.SortFunc(list, func(a, b Holding) int {
		return cmp.Or(cmp.Compare(a.Minor, b.Minor), cmp.Compare(a.PodUID, b.PodUID), cmp.Compare(a.Container, b.Container))
	})
}

// Decode reads a book. A program that gets an error may use nothing of the text.
func Decode(text []byte) (*Book, error) {
	var b Book
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, fmt.Errorf("book of the node: %w", err)
	}
	if b.Version != Version {
		return nil, fmt.Errorf("book of the node: version %q, want %q", b.Version, Version)
	}
	for i := range b.Holdings {
		h := &b.Holdings[i]
		if h.PCIBusID != "" {
			address, err := topology.ParseAddress(h.PCIBusID)
			if err != nil {
				return nil, fmt.Errorf("book of the node: a holding of card %d: %w", h.Minor, err)
			}
			h.PCIBusID = address.String() // as a Device has it
		}
		switch {
		case h.Minor < 0 || h.Minor >= contract.MaxCards:
			return nil, fmt.Errorf("book of the node: minor %d: want 0 to %d", h.Minor, contract.MaxCards-1)
		case h.PodUID == "" || h.Container == "":
			return nil, fmt.Errorf("book of the node: a holding of card %d without pod or container", h.Minor)
		case !slices.Contains([]string{Whole, Memory, Slices}, h.Kind):
			return nil, fmt.Errorf("book of the node: kind %q: want %s, %s or %s", h.Kind, Whole, Memory, Slices)
		case h.MemoryMiB < 0:
			return nil, fmt.Errorf("book of the node: %d MiB of card %d: want none or more", h.MemoryMiB, h.Minor)
		}
	}
	return &b, nil
}
