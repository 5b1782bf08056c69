package health

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// HistoryVersion is the version of History this release writes.
const HistoryVersion = "v1"

// Limits of a history, far above what a host can have.
const (
	maxHistoryBytes = 4 << 20
	maxHistoryCards = contract.MaxCards + maxGone
	maxTextBytes    = 2048
	maxBridges      = 65 // as package topology has it
)

// History is what has to outlive the agent. It changes only when the state of a card does, so a caller
// may compare texts to see whether to write it again.
type History struct {
	Version string `json:"version"`
	// Checksum is the SHA-256 of the text with an empty checksum.
	Checksum string `json:"checksum"`
	// Cards are sorted by minor, then uuid.
	Cards []CardHistory `json:"cards"`
}

// CardHistory is the past of one card.
type CardHistory struct {
	// Card is the card as last seen, as a node announces it.
	Card     contract.NodeDevice `json:"card"`
	Findings []FindingHistory    `json:"findings,omitempty"`
	// Ailing says that the card was faulty and has had findings since; After by what; Faults is how many
	// faults came in a row, and the next one after CalmAt begins to count anew.
	Ailing         bool      `json:"ailing,omitempty"`
	After          []Cause   `json:"after,omitempty"`
	ProbationUntil time.Time `json:"probationUntil,omitzero"`
	Faults         int       `json:"faults,omitempty"`
	CalmAt         time.Time `json:"calmAt,omitzero"`
	// DoubleBit is the last value of the counter, nil when it was never read.
	DoubleBit      *uint32   `json:"doubleBit,omitempty"`
	DoubleBitUntil time.Time `json:"doubleBitUntil,omitzero"`
	// Records are hashes of the error records last seen, nil when the log was never read.
	Records      []uint64  `json:"records"`
	RecordsUntil time.Time `json:"recordsUntil,omitzero"`
}

// FindingHistory is a finding, or a warning. Weight is warning, doubt, absence or fault.
type FindingHistory struct {
	Cause   Cause     `json:"cause"`
	Weight  string    `json:"weight"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// weights are the names of weights; the one at 0 is none.
var weights = [...]string{warning: "warning", doubt: "doubt", absence: "absence", proof: "fault"}

// History returns what has to be kept.
func (t *Tracker) History() History {
	h := History{Version: HistoryVersion, Cards: make([]CardHistory, 0, len(t.cards))}
	valid := func(text string) string { return strings.ToValidUTF8(text, "?") }
	wall := func(at time.Time) time.Time { return at.UTC().Round(0) } // without the monotonic clock
	for _, c := range t.cards {
		d := c.device
		if c.minor < 0 || c.minor >= contract.MaxCards {
			continue // no card that a node could announce
		}
		past := CardHistory{
			Card: contract.NodeDevice{
				Minor: c.minor, UUID: valid(c.uuid), Model: valid(d.Model), MemoryMiB: d.MemoryMiB,
				PCIBusID: d.PCIAddress.String(), Bridges: slices.Clone(d.Bridges), NUMA: d.NUMA,
			},
			Ailing: c.parole.ailing, After: slices.Clone(c.parole.after), ProbationUntil: wall(c.parole.until),
			Faults: c.parole.faults, CalmAt: wall(c.parole.calm),
			DoubleBitUntil: wall(c.ecc.until), RecordsUntil: wall(c.log.until),
		}
		if c.ecc.known {
			value := c.ecc.value
			past.DoubleBit = &value
		}
		if c.log.known {
			past.Records = append([]uint64{}, c.log.seen...)
		}
		for _, f := range c.found {
			past.Findings = append(past.Findings, FindingHistory{f.Cause, weights[f.weight], f.Message, wall(f.Since)})
		}
		h.Cards = append(h.Cards, past)
	}
	return h
}

// restore makes a card of its past.
func (t *Tracker) restore(past *CardHistory) *track {
	n := past.Card
	address, _ := topology.ParseAddress(n.PCIBusID) // validated
	c := &track{
		minor: n.Minor, uuid: n.UUID, known: true,
		device: eflib.Device{
			Minor: n.Minor, UUID: n.UUID, Model: n.Model, VendorID: eflib.VendorID, MemoryMiB: n.MemoryMiB,
			PCIAddress: address, Bridges: slices.Clone(n.Bridges), NUMA: n.NUMA, Node: eflib.NodePath(n.Minor),
		},
		parole: parole{
			ailing: past.Ailing, after: slices.Clone(past.After), until: past.ProbationUntil,
			faults: past.Faults, calm: past.CalmAt,
		},
		ecc: counter{until: past.DoubleBitUntil},
		log: records{known: past.Records != nil, seen: slices.Clone(past.Records), until: past.RecordsUntil},
	}
	if past.DoubleBit != nil {
		c.ecc.known, c.ecc.restored, c.ecc.value = true, true, *past.DoubleBit
	}
	for _, f := range past.Findings {
		w := weight(slices.Index(weights[:], f.Weight))
		if w == doubt && t.off {
			continue
		}
		c.found = append(c.found, finding{Finding{f.Cause, f.Message, f.Since}, w})
		if f.Cause == Reported {
			// The next sample decides whether it still says so, not the first list.
			c.asked = answer{state: eflib.Unhealthy, text: strings.TrimPrefix(f.Message, calledBad+": ")}
		}
	}
	c.shown = c.show()
	return c
}

// EncodeHistory returns the canonical text of a history: version and checksum set.
func EncodeHistory(h History) ([]byte, error) {
	h.Version = HistoryVersion
	if h.Cards == nil {
		h.Cards = []CardHistory{}
	}
	if err := h.validate(); err != nil {
		return nil, err
	}
	sum, err := h.sum()
	if err != nil {
		return nil, err
	}
	h.Checksum = sum
	return json.Marshal(h)
}

// DecodeHistory reads a history. Any error means that nothing of the text may be used.
func DecodeHistory(text []byte) (*History, error) {
	if len(text) > maxHistoryBytes {
		return nil, fmt.Errorf("health history of %d bytes: want at most %d", len(text), maxHistoryBytes)
	}
	var head struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("health history is not JSON: %w", err)
	}
	if head.Version != HistoryVersion {
		return nil, fmt.Errorf("health history has version %q: this release reads %s: %w", head.Version, HistoryVersion, contract.ErrVersion)
	}
	var h History
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&h); err != nil {
		return nil, fmt.Errorf("health history: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("health history: text after the JSON value")
	}
	sum, err := h.sum()
	if err != nil {
		return nil, err
	}
	if sum != h.Checksum {
		return nil, errors.New("health history: checksum differs")
	}
	if err := h.validate(); err != nil {
		return nil, err
	}
	return &h, nil
}

func (h History) sum() (string, error) {
	h.Checksum = ""
	text, err := json.Marshal(h)
	if err != nil {
		return "", fmt.Errorf("encode health history: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

func (h *History) validate() error {
	if len(h.Cards) > maxHistoryCards {
		return fmt.Errorf("health history of %d cards: want at most %d", len(h.Cards), maxHistoryCards)
	}
	for i := range h.Cards {
		if err := h.Cards[i].validate(); err != nil {
			return fmt.Errorf("health history: card %d (%s): %w", h.Cards[i].Card.Minor, h.Cards[i].Card.UUID, err)
		}
	}
	sorted := slices.IsSortedFunc(h.Cards, func(a, b CardHistory) int {
		return cmp.Or(cmp.Compare(a.Card.Minor, b.Card.Minor), strings.Compare(a.Card.UUID, b.Card.UUID))
	})
	if !sorted {
		return errors.New("health history: cards are not sorted")
	}
	return nil
}

func (c *CardHistory) validate() error {
	if c.Card.Minor < 0 || c.Card.Minor >= contract.MaxCards {
		return fmt.Errorf("minor: want 0 to %d", contract.MaxCards-1)
	}
	if len(c.Card.UUID) > maxTextBytes || len(c.Card.Model) > maxTextBytes || len(c.Card.Bridges) > maxBridges || c.Card.MemoryMiB < 0 || c.Card.Health != "" {
		return errors.New("the card is not as it is written")
	}
	if _, err := topology.ParseAddress(c.Card.PCIBusID); err != nil {
		return err
	}
	if c.Faults < 0 || c.Faults > maxFaults || len(c.Records) > maxRecords || !slices.IsSorted(c.Records) {
		return errors.New("faults or records are out of range")
	}
	last := Cause("")
	for _, f := range c.Findings {
		switch {
		case !slices.Contains(Causes(), f.Cause) || f.Cause <= last:
			return fmt.Errorf("finding %q: not known, not sorted, or there twice", f.Cause)
		case slices.Index(weights[:], f.Weight) < int(warning):
			return fmt.Errorf("finding %s: weight %q", f.Cause, f.Weight)
		case len(f.Message) > maxTextBytes:
			return fmt.Errorf("finding %s: message of %d bytes", f.Cause, len(f.Message))
		}
		last = f.Cause
	}
	for i, cause := range c.After {
		if !slices.Contains(Causes(), cause) || i > 0 && cause <= c.After[i-1] {
			return fmt.Errorf("after %q: not known, not sorted, or there twice", cause)
		}
	}
	return nil
}
