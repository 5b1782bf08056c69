package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// CordonVersion is the version of Cordon this release writes.
const CordonVersion = "v1"

// Cordon is the value of the node annotation CordonKey: cards closed for new holders by an
// administrator. Holders that run on them stay.
type Cordon struct {
	Version string         `json:"version"`
	Cards   []CordonedCard `json:"cards"`
}

// CordonedCard is one closed card. Until is the time it opens again; nil means not by itself.
type CordonedCard struct {
	Minor  int        `json:"minor"`
	Reason string     `json:"reason,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
}

// EncodeCordon returns the canonical text of c, sorted by minor.
func EncodeCordon(c Cordon) (string, error) {
	c.Version = CordonVersion
	c.Cards = slices.Clone(c.Cards)
	slices.SortFunc(c.Cards, func(a, b CordonedCard) int { return a.Minor - b.Minor })
	if err := c.validate(); err != nil {
		return "", err
	}
	b, err := json.Marshal(c)
	if err != nil {
		return "", fmt.Errorf("encode cordon: %w", err)
	}
	return string(b), nil
}

// DecodeCordon reads the annotation.
func DecodeCordon(text string) (*Cordon, error) {
	var c Cordon
	if err := decodeVersioned(text, CordonVersion, &c); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &c, nil
}

func (c *Cordon) validate() error {
	last := -1
	for _, card := range c.Cards {
		if card.Minor <= last || card.Minor >= MaxCards {
			return fmt.Errorf("minor %d: want 0 to %d, sorted, each once", card.Minor, MaxCards-1)
		}
		last = card.Minor
	}
	return nil
}
