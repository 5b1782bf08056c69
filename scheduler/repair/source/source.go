// Package source has those who may know which cards a pod holds whose record is to be corrected.
package source

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// Case is a pod whose record is to be corrected.
type Case struct {
	Names *contract.Names
	Pod   *v1.Pod
	// Limits are the containers that ask for GCU.
	Limits []share.Container
	// Node is the pod's node without the pod.
	Node *ledger.Node
}

// Pick is a card of a container. MiB is 0 where the container's limits are to say.
type Pick struct {
	Minor int
	MiB   int64
}

// Given is what the administrator says.
type Given map[string][]Pick

// Parse reads container=minor[:MiB][,minor[:MiB]...].
func Parse(texts []string) (Given, error) {
	out := Given{}
	for _, text := range texts {
		name, cards, ok := strings.Cut(text, "=")
		if !ok || name == "" || cards == "" {
			return nil, fmt.Errorf("%q: want container=card[:MiB][,card[:MiB]...], for example main=0 or main=4:8192,5:8192", text)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("container %s is given twice", name)
		}
		for part := range strings.SplitSeq(cards, ",") {
			card, mib, sized := strings.Cut(part, ":")
			p := Pick{}
			var err error
			if p.Minor, err = strconv.Atoi(card); err != nil || p.Minor < 0 || p.Minor >= contract.MaxCards {
				return nil, fmt.Errorf("%q: card %q: want a number from 0 to %d", text, card, contract.MaxCards-1)
			}
			if sized {
				if p.MiB, err = strconv.ParseInt(mib, 10, 64); err != nil || p.MiB < 1 {
					return nil, fmt.Errorf("%q: MiB %q: want a number above 0", text, mib)
				}
			}
			out[name] = append(out[name], p)
		}
	}
	return out, nil
}

// Name of the source.
func (Given) Name() string { return "given" }

// Cards returns what was given, unless it is of a container that asks for no GCU.
func (g Given) Cards(c *Case) (map[string][]Pick, error) {
	for name := range g {
		if !slices.ContainsFunc(c.Limits, func(l share.Container) bool { return l.Name == name }) {
			return nil, fmt.Errorf("container %s does not ask for GCU; there are %s", name, containerNames(c.Limits))
		}
	}
	return g, nil
}

func containerNames(limits []share.Container) string {
	var out []string
	for i := range limits {
		out = append(out, limits[i].Name)
	}
	return strings.Join(out, ", ")
}

// Record reads what can still be read of the record itself.
type Record struct{}

// Name of the source.
func (Record) Name() string { return "record" }

// Cards goes by uuid where the node has that card, else by minor. Amounts are not believed: limits say
// them.
func (Record) Cards(c *Case) (map[string][]Pick, error) {
	var record struct {
		Containers []struct {
			Name  string `json:"name"`
			Cards []struct {
				Minor any    `json:"minor"`
				UUID  string `json:"uuid"`
			} `json:"cards"`
		} `json:"containers"`
	}
	out := map[string][]Pick{}
	// A type that is not the field's is an error at the end; what could be read before it is kept.
	_ = json.Unmarshal([]byte(c.Pod.Annotations[c.Names.AllocationKey]), &record)
	for _, container := range record.Containers {
		var picks []Pick
		for _, card := range container.Cards {
			minor := cardOf(c.Node, card.UUID, card.Minor)
			if minor < 0 || slices.ContainsFunc(picks, func(p Pick) bool { return p.Minor == minor }) {
				picks = nil
				break
			}
			picks = append(picks, Pick{Minor: minor})
		}
		if len(picks) > 0 {
			out[container.Name] = picks
		}
	}
	return out, nil
}

func cardOf(n *ledger.Node, uuid string, minor any) int {
	for i := range n.Cards {
		if uuid != "" && n.Cards[i].UUID == contract.NormalUUID(uuid) {
			return n.Cards[i].Minor
		}
	}
	at := -1
	switch m := minor.(type) {
	case float64:
		if m == float64(int(m)) {
			at = int(m)
		}
	case string:
		if k, err := strconv.Atoi(m); err == nil {
			at = k
		}
	}
	if at < 0 || n.Index(at) < 0 {
		return -1
	}
	return at
}

// Rest reasons from the room that the other holders leave: a container that can be on one set of cards
// only is there, since it runs.
type Rest struct{}

// Name of the source.
func (Rest) Name() string { return "the only room beside the other holders" }

// Cards knows a pod of one container only; with several, room for one depends on where the others are.
func (Rest) Cards(c *Case) (map[string][]Pick, error) {
	if len(c.Limits) != 1 {
		return nil, nil
	}
	cont := &c.Limits[0]
	room := Room(c, cont)
	if len(room) != cont.Cards {
		return nil, nil
	}
	var picks []Pick
	for _, minor := range room {
		picks = append(picks, Pick{Minor: minor})
	}
	return map[string][]Pick{cont.Name: picks}, nil
}

// Room returns the cards that a container could be on beside the other holders of the node.
func Room(c *Case, cont *share.Container) []int {
	var out []int
	for i := range c.Node.Cards {
		card := &c.Node.Cards[i]
		need := cont.PerCardMiB(card.TotalMiB, c.Node.UnitMiB, c.Node.SliceCount)
		if card.Whole || !cont.Kind.Fractional() && !card.Free() || share.Add(card.UsedMiB, need) > card.TotalMiB {
			continue
		}
		out = append(out, card.Minor)
	}
	return out
}

// Hint is what the older annotations say, for the administrator to judge.
func Hint(c *Case) string {
	minor, ok := c.Pod.Annotations[c.Names.AssignedMinorKey]
	if !ok {
		return ""
	}
	return fmt.Sprintf("annotation %s says card %s; other makers' tools write it too", c.Names.AssignedMinorKey, minor)
}
