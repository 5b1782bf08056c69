// Package cordon closes single cards for new holders, and opens them again, by the node annotation that
// the scheduler reads.
//
// Promise: a change is made to the annotation as it was read, or not at all: when somebody else wrote to
// the node in between, it is read again. An annotation that cannot be read is an error and never
// overwritten. Holders of a card that is closed stay. Nodes and cards that do not exist are refused.
package cordon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/topscloud/topscloud/internal/contract"
)

// The version and kind of a list of results in JSON and YAML.
const (
	APIVersion = "gcu.topscloud.dev/v1"
	Kind       = "CordonedCards"
)

// Ref names a card: by its minor, or by its uuid, which then is not empty.
type Ref struct {
	Node  string
	Minor int
	UUID  string
}

// ParseRef reads node/minor or node/uuid.
func ParseRef(text string) (Ref, error) {
	node, card, ok := strings.Cut(text, "/")
	if !ok || node == "" || card == "" {
		return Ref{}, fmt.Errorf("%q: want <node>/<card>, for example gcu-node-1/6", text)
	}
	if minor, err := strconv.Atoi(card); err == nil && minor >= 0 && minor < contract.MaxCards {
		return Ref{Node: node, Minor: minor}, nil
	}
	if !strings.HasPrefix(card, contract.UUIDPrefix) {
		return Ref{}, fmt.Errorf("%q: want a card's number, 0 to %d, or its uuid, which starts with %s", text, contract.MaxCards-1, contract.UUIDPrefix)
	}
	return Ref{Node: node, Minor: -1, UUID: card}, nil
}

// Result is what was done to one card.
type Result struct {
	Node  string `json:"node"`
	Minor int    `json:"minor"`
	// Cordoned is how the card is now, Changed whether it was otherwise.
	Cordoned bool       `json:"cordoned"`
	Changed  bool       `json:"changed"`
	Reason   string     `json:"reason,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	// Holders are the pods that still hold some of the card; nil with HoldersUnseen.
	Holders []Holder `json:"holders,omitempty"`
	// HoldersUnseen says why nobody knows who holds it.
	HoldersUnseen string `json:"holdersUnseen,omitempty"`
}

// Holder is a pod on a card.
type Holder struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	MiB       int64  `json:"mib"`
	Whole     bool   `json:"whole,omitempty"`
	// Unsure is a pod without usable record: it may hold another card.
	Unsure bool `json:"unsure,omitempty"`
}

// Close cordons cards. Reason and until of a card that is cordoned already are replaced.
func Close(ctx context.Context, client kubernetes.Interface, names *contract.Names, refs []Ref, reason string, until *time.Time) ([]Result, error) {
	return each(ctx, client, names, refs, func(list []contract.CordonedCard, minor int) ([]contract.CordonedCard, Result) {
		card := contract.CordonedCard{Minor: minor, Reason: reason, Until: until}
		r := Result{Minor: minor, Cordoned: true, Changed: true, Reason: reason, Until: until}
		at := slices.IndexFunc(list, func(c contract.CordonedCard) bool { return c.Minor == minor })
		if at < 0 {
			return append(list, card), r
		}
		r.Changed = list[at].Reason != reason || !sameTime(list[at].Until, until)
		list[at] = card
		return list, r
	})
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// Open uncordons cards.
func Open(ctx context.Context, client kubernetes.Interface, names *contract.Names, refs []Ref) ([]Result, error) {
	return each(ctx, client, names, refs, func(list []contract.CordonedCard, minor int) ([]contract.CordonedCard, Result) {
		left := slices.DeleteFunc(slices.Clone(list), func(c contract.CordonedCard) bool { return c.Minor == minor })
		return left, Result{Minor: minor, Changed: len(left) < len(list)}
	})
}

// edit changes the list of a node's cordoned cards for one card.
type edit func(list []contract.CordonedCard, minor int) ([]contract.CordonedCard, Result)

func each(ctx context.Context, client kubernetes.Interface, names *contract.Names, refs []Ref, change edit) ([]Result, error) {
	var out []Result
	for len(refs) > 0 {
		// All cards of a node in one write, so that a refusal leaves the node as it was.
		name := refs[0].Node
		var here []Ref
		refs = slices.DeleteFunc(slices.Clone(refs), func(r Ref) bool {
			if r.Node == name {
				here = append(here, r)
			}
			return r.Node == name
		})
		var results []Result
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() (err error) {
			results, err = once(ctx, client, names, name, here, change)
			return err
		})
		if err != nil {
			return out, err
		}
		addHolders(ctx, client, names, name, results)
		out = append(out, results...)
	}
	return out, nil
}

// once reads a node and writes its cordons, on condition that nobody wrote to it in between.
func once(ctx context.Context, client kubernetes.Interface, names *contract.Names, name string, refs []Ref, change edit) ([]Result, error) {
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, unknownNode(ctx, client, names, name)
	}
	if err != nil {
		return nil, fmt.Errorf("get node %s: %w%s", name, err, askFor(err))
	}
	list, err := read(names, node)
	if err != nil {
		return nil, err
	}
	var results []Result
	changed := false
	for _, ref := range refs {
		minor, err := resolve(names, node, list, ref)
		if err != nil {
			return nil, err
		}
		var r Result
		list, r = change(list, minor)
		r.Node = name
		changed = changed || r.Changed
		results = append(results, r)
	}
	if !changed {
		return results, nil
	}
	return results, write(ctx, client, names, node, list)
}

func read(names *contract.Names, node *v1.Node) ([]contract.CordonedCard, error) {
	text, ok := node.Annotations[names.CordonKey]
	if !ok {
		return nil, nil
	}
	c, err := contract.DecodeCordon(text)
	if err != nil {
		return nil, fmt.Errorf("annotation %[1]s of node %[2]s cannot be read, so nothing was changed: %[3]w\n"+
			"look at it:                  kubectl get node %[2]s -o jsonpath='{.metadata.annotations.%[4]s}'\n"+
			"open all cards of the node:  kubectl annotate node %[2]s %[1]s-", names.CordonKey, node.Name, err, strings.ReplaceAll(names.CordonKey, ".", `\.`))
	}
	return c.Cards, nil
}

// resolve returns the minor of a card that the node has, or that is cordoned although the node no longer
// has it.
func resolve(names *contract.Names, node *v1.Node, cordoned []contract.CordonedCard, ref Ref) (int, error) {
	if ref.UUID == "" && slices.ContainsFunc(cordoned, func(c contract.CordonedCard) bool { return c.Minor == ref.Minor }) {
		return ref.Minor, nil
	}
	text, ok := node.Annotations[names.DevicesKey]
	if !ok {
		return 0, fmt.Errorf("node %s announces no GCU cards (annotation %s)", node.Name, names.DevicesKey)
	}
	d, err := contract.DecodeDevices(text)
	if err != nil {
		return 0, fmt.Errorf("annotation %s of node %s cannot be read: %w", names.DevicesKey, node.Name, err)
	}
	var has []string
	for _, dev := range d.Devices {
		if ref.UUID == "" && dev.Minor == ref.Minor || ref.UUID != "" && contract.NormalUUID(dev.UUID) == ref.UUID {
			return dev.Minor, nil
		}
		if has = append(has, strconv.Itoa(dev.Minor)); ref.UUID != "" {
			has[len(has)-1] += " " + contract.NormalUUID(dev.UUID)
		}
	}
	what := strconv.Itoa(ref.Minor)
	if ref.UUID != "" {
		what = ref.UUID
	}
	return 0, fmt.Errorf("node %s has no card %s; it has %s", node.Name, what, strings.Join(has, ", "))
}

func unknownNode(ctx context.Context, client kubernetes.Interface, names *contract.Names, name string) error {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("there is no node %s", name)
	}
	var has []string
	for i := range list.Items {
		if _, ok := list.Items[i].Annotations[names.DevicesKey]; ok {
			has = append(has, list.Items[i].Name)
		}
	}
	slices.Sort(has)
	if len(has) == 0 {
		return fmt.Errorf("there is no node %s, and none that announces GCU cards", name)
	}
	if len(has) > 10 {
		has = append(has[:10], "…")
	}
	return fmt.Errorf("there is no node %s; nodes with GCU cards: %s", name, strings.Join(has, ", "))
}

func write(ctx context.Context, client kubernetes.Interface, names *contract.Names, node *v1.Node, list []contract.CordonedCard) error {
	var value any // null takes the annotation away
	if len(list) > 0 {
		text, err := contract.EncodeCordon(contract.Cordon{Cards: list})
		if err != nil {
			return err
		}
		value = text
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": node.ResourceVersion, "annotations": map[string]any{names.CordonKey: value},
	}})
	if err != nil {
		return fmt.Errorf("patch of node %s: %w", node.Name, err)
	}
	if _, err = client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch node %s: %w%s", node.Name, err, askFor(err))
	}
	return nil
}

// askFor says which role has a right that is missing.
func askFor(err error) string {
	if apierrors.IsForbidden(err) {
		return " (ClusterRole gcu-operator may)"
	}
	return ""
}
