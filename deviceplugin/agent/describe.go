package agent

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/deviceplugin/health"
)

// describe puts a change of a card's health into an event's words. Minor and cause are in them, since an
// administrator looks for the card; no time and no measured number is, so that repeats are counted as one.
func describe(c health.Change) (kind, reason, message string) {
	card := fmt.Sprintf("card %d", c.Card.Minor)
	switch c.Kind {
	case health.Appeared:
		return v1.EventTypeNormal, "GCUCardAppeared", card + " is there"
	case health.Recovered:
		return v1.EventTypeNormal, "GCUCardRecovered", card + " is well and takes pods again"
	case health.OnProbation:
		return v1.EventTypeNormal, "GCUCardOnProbation", card + " is well again; it takes pods when it has stayed so for a while"
	case health.Replaced:
		return v1.EventTypeWarning, "GCUCardReplaced", card + " was exchanged; what pods held of the former one is gone"
	case health.Gone:
		return v1.EventTypeWarning, "GCUCardGone", card + ": " + messages(c.Card.Findings)
	case health.Warned:
		return v1.EventTypeWarning, "GCUCardWarning", card + ": " + messages(c.Card.Warnings)
	case health.BecameUnknown:
		return v1.EventTypeWarning, "GCUCardUnknown", card + " takes no new pods: " + messages(c.Card.Findings)
	}
	return v1.EventTypeWarning, "GCUCardUnhealthy", card + ": " + messages(c.Card.Findings)
}

func messages(list []health.Finding) string {
	var out []string
	for _, f := range list {
		out = append(out, fmt.Sprintf("%s (%s)", f.Message, f.Cause))
	}
	return strings.Join(out, "; ")
}
