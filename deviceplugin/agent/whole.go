package agent

import (
	"context"
	"slices"

	"github.com/topscloud/topscloud/deviceplugin/plugin"
	gcuplugin "github.com/topscloud/topscloud/gcushare/plugin"
)

// wholePlugin is the arbiter's plugin for whole cards, with a preference for IDs that are the cards which the
// container will get.
type wholePlugin struct {
	*gcuplugin.Plugin
	agent *Agent
}

// Prefer never fails, since kubelet would fail the pod for good: what cannot be preferred is left to kubelet's
// order. The record decides about the cards in any case.
func (w *wholePlugin) Prefer(_ context.Context, available, include []string, size int) ([]string, error) {
	a := w.agent
	node := a.cardsOf()
	fill := func(ids []string) []string {
		for _, id := range slices.Sorted(slices.Values(available)) {
			if len(ids) < size && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	if node == nil || size < 1 {
		return fill(slices.Clone(include)), nil
	}
	minors, spare := split(available)
	must, spareMust := split(include)
	r := plugin.Request{
		Available: minors, MustInclude: must, Size: min(size-len(spareMust), len(minors)), Waiting: waiting(node, a.arbiter.Book()),
	}
	chosen, err := plugin.Prefer(node.Tree, r)
	if err != nil {
		a.logger.V(2).Info("No preference", "err", err, "spare", len(spare))
		return fill(slices.Clone(include)), nil
	}
	out := spareMust
	for _, minor := range chosen {
		out = append(out, plugin.ID(minor))
	}
	return fill(out), nil
}

// split tells IDs of cards from spare ones.
func split(ids []string) (minors []int, spare []string) {
	for _, id := range ids {
		if minor, err := plugin.ParseID(id); err == nil {
			minors = append(minors, minor)
		} else {
			spare = append(spare, id)
		}
	}
	return minors, spare
}
