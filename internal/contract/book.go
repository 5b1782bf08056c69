package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// BookVersion is the version of Book this release writes.
const BookVersion = "v1"

// Book is the file in which a node's agent keeps what it gave to whom. It outlives the agent and
// kubelet; the records on the pods say what should be, the book what was done.
type Book struct {
	Version string `json:"version"`
	// Checksum is the SHA-256 of the text with an empty checksum.
	Checksum string       `json:"checksum"`
	Pods     []BookPod    `json:"pods"`
	Tickets  []BookTicket `json:"tickets"`
}

// BookPod is a pod of which at least one container was given its cards, sorted by UID.
type BookPod struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Charges is what the pod holds on each card, by its record: at first that of its hungriest phase. It may
	// be more than the pod holds now, never less.
	Charges []BookCharge `json:"charges"`
}

// BookCharge is what a pod holds on one card.
type BookCharge struct {
	Minor     int    `json:"minor"`
	UUID      string `json:"uuid"`
	MemoryMiB int64  `json:"memoryMiB"`
	Whole     bool   `json:"whole,omitempty"`
}

// BookTicket is an answer to one Allocate call, sorted by name. The fields from PodUID on are set once
// its container is known.
type BookTicket struct {
	Name      string           `json:"name"`
	Resource  string           `json:"resource"`
	IDs       []string         `json:"ids"`
	Issued    time.Time        `json:"issued"`
	PodUID    string           `json:"podUID,omitempty"`
	Container string           `json:"container,omitempty"`
	Cards     []CardAllocation `json:"cards,omitempty"`
}

// EncodeBook returns the canonical text of a book: version and checksum set, lists sorted.
func EncodeBook(b Book) ([]byte, error) {
	b.Version = BookVersion
	b.Pods, b.Tickets = slices.Clone(b.Pods), slices.Clone(b.Tickets)
	slices.SortFunc(b.Pods, func(x, y BookPod) int { return strings.Compare(x.UID, y.UID) })
	slices.SortFunc(b.Tickets, func(x, y BookTicket) int { return strings.Compare(x.Name, y.Name) })
	if err := b.validate(); err != nil {
		return nil, err
	}
	sum, err := b.sum()
	if err != nil {
		return nil, err
	}
	b.Checksum = sum
	text, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode book: %w", err)
	}
	return text, nil
}

// DecodeBook reads a book. Any error means that nothing of the text may be used.
func DecodeBook(text []byte) (*Book, error) {
	var b Book
	if err := decodeVersioned(string(text), BookVersion, &b); err != nil {
		return nil, err
	}
	switch sum, err := b.sum(); {
	case err != nil:
		return nil, err
	case sum != b.Checksum:
		return nil, errors.New("checksum differs")
	}
	if err := b.validate(); err != nil {
		return nil, err
	}
	return &b, nil
}

func (b Book) sum() (string, error) {
	b.Checksum = ""
	text, err := json.Marshal(b)
	if err != nil {
		return "", fmt.Errorf("encode book: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

func (b *Book) validate() error {
	pods := map[string]bool{}
	for _, p := range b.Pods {
		if p.UID == "" || pods[p.UID] {
			return fmt.Errorf("pod %q: no uid, or one that stands twice", p.UID)
		}
		pods[p.UID] = true
		for _, c := range p.Charges {
			if c.Minor < 0 || c.Minor >= MaxCards || c.MemoryMiB < 0 || c.MemoryMiB > maxCardMiB {
				return fmt.Errorf("pod %s: minor %d, %d MiB: out of range", p.UID, c.Minor, c.MemoryMiB)
			}
		}
	}
	last := ""
	for _, t := range b.Tickets {
		switch {
		case t.Name <= last:
			return fmt.Errorf("ticket %q: not sorted by name, or one stands twice", t.Name)
		case t.PodUID != "" && !pods[t.PodUID]:
			return fmt.Errorf("ticket %s: pod %s is not in the book", t.Name, t.PodUID)
		case (t.PodUID == "") != (t.Container == "") || (t.PodUID == "") != (len(t.Cards) == 0):
			return fmt.Errorf("ticket %s: pod, container and cards: all or none", t.Name)
		}
		last = t.Name
	}
	return nil
}
