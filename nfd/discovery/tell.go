package discovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/nfd/labels"
	"github.com/topscloud/topscloud/nfd/publish"
)

func (d *Discovery) event(ctx context.Context, reason, message string) {
	if d.o.Events != nil {
		d.o.Events.Event(ctx, v1.EventTypeNormal, reason, message)
	}
}

// ownTime says whether a label is one of the times that discovery notes. They say nothing of the cards, so nobody
// needs to hear that one was set anew, as it is when a node is taken back from labels by hand.
func (d *Discovery) ownTime(key string) bool {
	return strings.HasPrefix(key, d.o.Labels.Names.DiscoveryPrefix)
}

// tellOverride tells of a label of somebody else that was taken over.
func (d *Discovery) tellOverride(ctx context.Context, o publish.Override) {
	if d.ownTime(o.Key) {
		return
	}
	is := "it is " + o.Is
	if o.Is == "" {
		is = "it was removed, since the cards of this node differ in it"
	}
	d.event(ctx, "LabelOverridden", fmt.Sprintf("label %s was %s, set by somebody else; %s. %s", o.Key, o.Was, is, d.remedy()))
}

func (d *Discovery) remedy() string {
	return fmt.Sprintf("To label this node by hand: kubectl label node %s %s=false", d.o.Node, d.optOut())
}

// foreign is a value on the Node that is not the one NFD was given.
type foreign struct {
	value string
	told  bool
}

// tellForeign tells of such values that are there twice in a row, so that it is not a change on its way. NFD
// sets them back in its own time.
func (d *Discovery) tellForeign(ctx context.Context, are map[string]string, set labels.Set) {
	seen := map[string]foreign{}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		is, there := are[key]
		if !there || is == set[key] || d.ownTime(key) {
			continue
		}
		before := d.foreign[key]
		if before.value == is && !before.told {
			d.event(ctx, "LabelOverridden", fmt.Sprintf("label %s is %s, set by somebody else; the cards say %s, and NFD sets it back. %s", key, is, set[key], d.remedy()))
		}
		seen[key] = foreign{value: is, told: before.value == is}
	}
	d.foreign = seen
}

// tellProblems logs what is wrong with single cards, once for as long as it stays the same.
func (d *Discovery) tellProblems(ctx context.Context, problems error) {
	text := ""
	if problems != nil {
		text = problems.Error()
		d.o.Metrics.problems.Inc()
	}
	if text != d.said && text != "" {
		klog.FromContext(ctx).Info("Some cards cannot be read in full; what was published of them stays", "problems", text)
	}
	d.said = text
}
