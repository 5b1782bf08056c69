package visible

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/topscloud/topscloud/internal/contract"
)

// Selection is what a value asks for. The zero value asks for nothing.
type Selection struct {
	kind   kind
	minors []int
}

type kind int

const (
	void kind = iota
	none
	all
	listed
)

// Parse reads a value. The value of an absent variable is "".
func Parse(value string) (Selection, error) {
	switch value {
	case "", "void":
		return Selection{}, nil
	case "none":
		return Selection{kind: none}, nil
	case "all":
		return Selection{kind: all}, nil
	}
	var minors []int
	for card := range strings.SplitSeq(value, ",") {
		minor, err := parseCard(card)
		if err != nil {
			return Selection{}, fmt.Errorf("%s=%q: %w", contract.EnvVisibleDevices, value, err)
		}
		minors = append(minors, minor)
	}
	slices.Sort(minors)
	return Selection{kind: listed, minors: slices.Compact(minors)}, nil
}

func parseCard(card string) (int, error) {
	digits := strings.TrimPrefix(card, contract.UUIDPrefix)
	minor, err := strconv.Atoi(digits)
	// The way back has to give the same digits: "+1" and "01" are no numbers of cards.
	if err != nil || strconv.Itoa(minor) != digits {
		return 0, fmt.Errorf("%q is no card: want numbers such as 0,1 or GCU-0,GCU-1, or one of all, none, void", card)
	}
	if minor < 0 || minor >= contract.MaxCards {
		return 0, fmt.Errorf("card %q: want 0 to %d", card, contract.MaxCards-1)
	}
	return minor, nil
}

// Void says that the container is to be left alone.
func (s Selection) Void() bool { return s.kind == void }

// Pick returns those of the host's cards that are asked for, sorted. A card that is asked for by number
// and not there is an error, and so is "all" on a host without cards.
func (s Selection) Pick(host []int) ([]int, error) {
	switch s.kind {
	case all:
		if len(host) == 0 {
			return nil, fmt.Errorf("%s=%q: this host has no card", contract.EnvVisibleDevices, "all")
		}
		return slices.Sorted(slices.Values(host)), nil
	case listed:
		for _, minor := range s.minors {
			if !slices.Contains(host, minor) {
				return nil, fmt.Errorf("%s=%q: this host has no card %d", contract.EnvVisibleDevices, s, minor)
			}
		}
		return slices.Clone(s.minors), nil
	}
	return nil, nil
}

// String returns the shortest value that asks for the same.
func (s Selection) String() string {
	switch s.kind {
	case none:
		return "none"
	case all:
		return "all"
	case listed:
		words := make([]string, len(s.minors))
		for i, minor := range s.minors {
			words[i] = strconv.Itoa(minor)
		}
		return strings.Join(words, ",")
	}
	return "void"
}
