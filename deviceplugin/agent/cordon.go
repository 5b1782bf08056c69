package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/internal/contract"
)

// openCordons takes cards whose time is up out of the cordon annotation. Nobody else looks at the time: a
// reader of the annotation takes every card in it for closed, so that clocks need not agree.
func (a *Agent) openCordons(ctx context.Context, node *v1.Node, now time.Time) {
	text := node.Annotations[a.o.Names.CordonKey]
	if text == "" {
		return
	}
	cordon, err := contract.DecodeCordon(text)
	if err != nil {
		return // the node is closed for it, and says so
	}
	var opened []int
	cordon.Cards = slices.DeleteFunc(cordon.Cards, func(c contract.CordonedCard) bool {
		over := c.Until != nil && !now.Before(*c.Until)
		if over {
			opened = append(opened, c.Minor)
		}
		return over
	})
	if len(opened) == 0 {
		return
	}
	var value any // nil removes the key
	if len(cordon.Cards) > 0 {
		if value, err = contract.EncodeCordon(*cordon); err != nil {
			return
		}
	}
	// The version keeps a cordon that is being changed at this moment.
	a.patchNode(ctx, map[string]any{"metadata": map[string]any{
		"resourceVersion": node.ResourceVersion,
		"annotations":     map[string]any{a.o.Names.CordonKey: value},
	}}, types.MergePatchType)
	for _, minor := range opened {
		a.nodeEvent(v1.EventTypeNormal, "GCUCardOpened", fmt.Sprintf("card %d takes pods again: the time of its cordon is over", minor))
	}
}
