package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/nfd/labels"
)

// Override is a label that somebody else had set, and that is not so any more.
type Override struct {
	Key, Was string
	// Is is the value now, empty where the label was removed because the cards differ in it.
	Is string
}

// NodeLabels is the Node object.
type NodeLabels struct {
	Client kubernetes.Interface
	Names  *contract.Names
	Node   string
	// Told is called for each label that was taken over, after the write. It may be nil.
	Told func(context.Context, Override)
}

var _ Output = (*NodeLabels)(nil)

// String names the node.
func (n *NodeLabels) String() string { return "labels of node " + n.Node }

// Read returns what was recorded as written, whatever the node's labels are now.
func (n *NodeLabels) Read(ctx context.Context) (labels.Set, error) {
	_, recorded, err := n.read(ctx)
	return recorded, err
}

func (n *NodeLabels) read(ctx context.Context) (*v1.Node, labels.Set, error) {
	node, err := n.Client.CoreV1().Nodes().Get(ctx, n.Node, metav1.GetOptions{})
	if err != nil {
		return nil, nil, err
	}
	recorded, err := n.recorded(node)
	return node, recorded, err
}

func (n *NodeLabels) recorded(node *v1.Node) (labels.Set, error) {
	text, ok := node.Annotations[n.Names.PublishedLabelsKey]
	if !ok {
		return nil, nil
	}
	p, err := contract.DecodePublishedLabels(text)
	if err != nil {
		return nil, fmt.Errorf("node %s: annotation %s: %w (remove the annotation to begin anew; labels stay)", node.Name, n.Names.PublishedLabelsKey, err)
	}
	return p.Labels, nil
}

// attempts bounds how often a write that met another one is tried again at once.
const attempts = 5

// Publish writes labels and record in one patch. It holds for the Node that was read: when the Node has
// changed meanwhile, both are looked at again.
func (n *NodeLabels) Publish(ctx context.Context, r labels.Result) (bool, error) {
	if err := legalSet(r.Labels); err != nil {
		return false, err
	}
	for attempt := 1; ; attempt++ {
		changed, err := n.publish(ctx, r)
		if !apierrors.IsConflict(err) || attempt == attempts {
			return changed, err
		}
	}
}

func (n *NodeLabels) publish(ctx context.Context, r labels.Result) (bool, error) {
	node, recorded, err := n.read(ctx)
	if err != nil {
		return false, err
	}
	change := map[string]any{}
	var overrides []Override
	for key, value := range r.Labels {
		was, there := node.Labels[key]
		if there && was == value {
			continue
		}
		change[key] = value
		if there && was != recorded[key] {
			overrides = append(overrides, Override{Key: key, Was: was, Is: value})
		}
	}
	for key, written := range recorded {
		if _, stays := r.Labels[key]; stays {
			continue
		}
		// What somebody wrote over ours since is theirs, and our record of it ends.
		if is, there := node.Labels[key]; there && (is == written || slices.Contains(r.False, key)) {
			change[key] = nil
		}
	}
	for _, key := range r.False {
		if was, there := node.Labels[key]; there && was != recorded[key] {
			change[key] = nil
			overrides = append(overrides, Override{Key: key, Was: was})
		}
	}
	annotation, err := n.record(recorded, r.Labels)
	if err != nil {
		return false, err
	}
	if len(change) == 0 && annotation == nil {
		return false, nil
	}
	if err := n.patch(ctx, node, change, annotation); err != nil {
		return false, err
	}
	slices.SortFunc(overrides, func(a, b Override) int { return strings.Compare(a.Key, b.Key) })
	for _, o := range overrides {
		if n.Told != nil {
			n.Told(ctx, o)
		}
	}
	return true, nil
}

// record returns the change of the annotation, nil for none.
func (n *NodeLabels) record(was, is labels.Set) (map[string]any, error) {
	if maps.Equal(was, is) {
		return nil, nil
	}
	if len(is) == 0 {
		return map[string]any{n.Names.PublishedLabelsKey: nil}, nil
	}
	text, err := contract.EncodePublishedLabels(contract.PublishedLabels{Labels: is})
	return map[string]any{n.Names.PublishedLabelsKey: text}, err
}

func (n *NodeLabels) patch(ctx context.Context, node *v1.Node, changed, annotations map[string]any) error {
	meta := map[string]any{"resourceVersion": node.ResourceVersion, "uid": node.UID}
	if len(changed) > 0 {
		meta["labels"] = changed
	}
	if annotations != nil {
		meta["annotations"] = annotations
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return err
	}
	_, err = n.Client.CoreV1().Nodes().Patch(ctx, n.Node, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	return err
}

// Disown forgets what was written and leaves the labels as they are: from now on they are somebody else's. It
// reports whether there was anything to forget.
func (n *NodeLabels) Disown(ctx context.Context) (bool, error) {
	node, err := n.Client.CoreV1().Nodes().Get(ctx, n.Node, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	if _, ok := node.Annotations[n.Names.PublishedLabelsKey]; !ok {
		return false, nil
	}
	return true, n.patch(ctx, node, nil, map[string]any{n.Names.PublishedLabelsKey: nil})
}

// manager is the name of our writes in managed fields, and the label of what we manage.
const manager = "gcu-feature-discovery"
