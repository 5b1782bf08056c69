package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// AllocationVersion is the version of Allocation this release writes.
const AllocationVersion = "v1"

// Limits of a record. A Binding may push a pod's annotations past the API server's limit, and then
// every later status write of that pod fails; so both are checked before a pod is placed.
const (
	MaxAllocationBytes  = 16 << 10
	MaxAnnotationsBytes = 256 << 10
)

// ErrVersion says that a text was written in a version this release does not read.
var ErrVersion = errors.New("unknown version")

// Allocation is the record: which cards each container of a pod holds, and how much of them. It is
// the value of the pod annotation AllocationKey and the only truth about who holds what.
type Allocation struct {
	Version    string                `json:"version"`
	Node       string                `json:"node"`
	Containers []ContainerAllocation `json:"containers"`
}

// ContainerAllocation is what one container (init containers and sidecars included) holds.
type ContainerAllocation struct {
	Name  string           `json:"name"`
	Cards []CardAllocation `json:"cards"`
}

// CardAllocation is a holding on one card. MemoryMiB of a whole card is the card's memory at the time
// it was given out.
type CardAllocation struct {
	Minor     int    `json:"minor"`
	UUID      string `json:"uuid"`
	MemoryMiB int64  `json:"memoryMiB"`
	Whole     bool   `json:"whole,omitempty"`
}

// EncodeAllocation returns the text of a record. It refuses what DecodeAllocation would refuse and
// what is longer than MaxAllocationBytes.
func EncodeAllocation(a Allocation) (string, error) {
	a.Version = AllocationVersion
	if err := a.validate(); err != nil {
		return "", err
	}
	b, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("encode allocation: %w", err)
	}
	if len(b) > MaxAllocationBytes {
		return "", fmt.Errorf("allocation of %d bytes: want at most %d", len(b), MaxAllocationBytes)
	}
	return string(b), nil
}

// DecodeAllocation reads a record. Any error means that the holder's cards are unknown.
func DecodeAllocation(text string) (*Allocation, error) {
	if len(text) > MaxAllocationBytes {
		return nil, fmt.Errorf("allocation of %d bytes: want at most %d", len(text), MaxAllocationBytes)
	}
	var a Allocation
	if err := decodeVersioned(text, AllocationVersion, &a); err != nil {
		return nil, err
	}
	if err := a.validate(); err != nil {
		return nil, err
	}
	return &a, nil
}

func (a *Allocation) validate() error {
	if a.Node == "" {
		return errors.New("no node")
	}
	if len(a.Containers) == 0 {
		return errors.New("no containers")
	}
	seen := make(map[string]bool, len(a.Containers))
	for _, c := range a.Containers {
		if c.Name == "" || seen[c.Name] {
			return fmt.Errorf("container %q: no name, or one that stands twice", c.Name)
		}
		seen[c.Name] = true
		if len(c.Cards) == 0 {
			return fmt.Errorf("container %q: no cards", c.Name)
		}
		var minors [MaxCards]bool
		for _, card := range c.Cards {
			switch {
			case card.Minor < 0 || card.Minor >= MaxCards:
				return fmt.Errorf("container %q: minor %d: want 0 to %d", c.Name, card.Minor, MaxCards-1)
			case minors[card.Minor]:
				return fmt.Errorf("container %q: minor %d stands twice", c.Name, card.Minor)
			case card.UUID == "":
				return fmt.Errorf("container %q: minor %d: no uuid", c.Name, card.Minor)
			case card.MemoryMiB < 1 || card.MemoryMiB > maxCardMiB:
				return fmt.Errorf("container %q: minor %d: memoryMiB %d: want 1 to %d", c.Name, card.Minor, card.MemoryMiB, int64(maxCardMiB))
			}
			minors[card.Minor] = true
		}
	}
	return nil
}

// decodeVersioned reads one JSON value into out after its version was seen to be want. Unknown
// fields and trailing text are errors: a newer writer bumps the version, so either is corruption.
func decodeVersioned(text, want string, out any) error {
	var head struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal([]byte(text), &head); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if head.Version != want {
		return fmt.Errorf("version %q: this release reads %s: %w", head.Version, want, ErrVersion)
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(out); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the JSON value")
	}
	return nil
}
