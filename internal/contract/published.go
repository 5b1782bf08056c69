package contract

import (
	"encoding/json"
	"errors"
	"fmt"
)

// PublishedLabelsVersion is the version of PublishedLabels this release writes.
const PublishedLabelsVersion = "v1"

// maxPublishedLabels bounds what is read: a node with a card of every model has far fewer.
const maxPublishedLabels = 512

// PublishedLabels is the value of the node annotation PublishedLabelsKey: the labels that feature
// discovery wrote on the node by itself, with their values. What is not in it is somebody else's.
type PublishedLabels struct {
	Version string            `json:"version"`
	Labels  map[string]string `json:"labels"`
}

// EncodePublishedLabels returns the canonical text of p, keys sorted.
func EncodePublishedLabels(p PublishedLabels) (string, error) {
	p.Version = PublishedLabelsVersion
	if err := p.validate(); err != nil {
		return "", err
	}
	b, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("encode published labels: %w", err)
	}
	return string(b), nil
}

// DecodePublishedLabels reads the annotation.
func DecodePublishedLabels(text string) (*PublishedLabels, error) {
	var p PublishedLabels
	if err := decodeVersioned(text, PublishedLabelsVersion, &p); err != nil {
		return nil, err
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	return &p, nil
}

func (p *PublishedLabels) validate() error {
	if len(p.Labels) == 0 {
		return errors.New("labels: want at least one; without any there is no annotation")
	}
	if len(p.Labels) > maxPublishedLabels {
		return fmt.Errorf("labels: %d of them, want at most %d", len(p.Labels), maxPublishedLabels)
	}
	for key := range p.Labels {
		if key == "" {
			return errors.New("labels: a key is empty")
		}
	}
	return nil
}
