package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/eflib"
	gcuplugin "github.com/topscloud/topscloud/gcushare/plugin"
)

// sampleTime bounds what one card may take to answer.
const sampleTime = 3 * time.Second

// watchCards looks at the cards' health until ctx ends.
func (a *Agent) watchCards(ctx context.Context) {
	states := a.o.Source.Watch(ctx)
	ticker := time.NewTicker(a.o.HealthInterval)
	defer ticker.Stop()
	var state eflib.State
	seen := false
	for {
		select {
		case <-ctx.Done():
			return
		case next, open := <-states:
			if !open {
				return
			}
			state, seen = next, true
		case <-ticker.C:
			if !seen {
				continue
			}
		}
		samples, errs := eflib.SampleAll(ctx, a.o.Source, state.Devices, a.fields(), sampleTime)
		if ctx.Err() != nil {
			return
		}
		a.look(state, samples, errs)
	}
}

func (a *Agent) fields() eflib.Field {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tracker.Fields()
}

// look takes in what was seen of the cards.
func (a *Agent) look(state eflib.State, samples []eflib.Sample, errs []error) {
	a.mu.Lock()
	now := time.Now()
	changes := a.tracker.Update(now, state, samples, errs)
	before := a.report
	a.report = health.Steady(before, a.tracker.Report(), now, a.o.HealthInterval)
	first := !a.looked
	a.looked = true
	history := a.tracker.History()
	changed := first || len(changes) > 0 || !sameReport(before, a.report)
	a.mu.Unlock()
	if first || len(changes) > 0 {
		a.saveHealth(history)
	}
	for _, c := range changes {
		if first && c.Kind == health.Appeared {
			continue // the cards of a node are no news
		}
		a.tell(c)
	}
	if changed {
		a.setCapacity()
		a.trigger()
	}
}

// sameReport compares what others are told of the cards.
func sameReport(a, b health.Report) bool {
	return slices.EqualFunc(a.Cards, b.Cards, func(x, y health.Card) bool {
		return x.Minor == y.Minor && x.UUID == y.UUID && x.Problem() == y.Problem() && x.Present == y.Present &&
			x.Faulty == y.Faulty && x.Usable == y.Usable && x.Device.MemoryMiB == y.Device.MemoryMiB && sameFindings(x.Warnings, y.Warnings)
	}) && sameFindings(a.Host, b.Host)
}

func sameFindings(a, b []health.Finding) bool {
	return slices.EqualFunc(a, b, func(x, y health.Finding) bool { return x.Cause == y.Cause && x.Message == y.Message })
}

// waitLooked waits until the cards were looked at once; false when ctx ended before.
func (a *Agent) waitLooked(ctx context.Context) bool {
	for {
		a.mu.Lock()
		looked := a.looked
		a.mu.Unlock()
		if looked {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-a.wake:
		}
	}
}

// loadHealth makes the tracker go on from what it knew before a restart.
func (a *Agent) loadHealth() error {
	var history *health.History
	text, err := os.ReadFile(a.o.historyPath())
	if err == nil {
		history, err = health.DecodeHistory(text)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		a.logger.Error(err, "The history of the cards' health cannot be read and starts anew", "file", a.o.historyPath())
	}
	a.tracker, err = health.New(a.o.Health, history)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	return nil
}

func (a *Agent) saveHealth(h health.History) {
	text, err := health.EncodeHistory(h)
	if err == nil {
		err = gcuplugin.WriteFile(a.o.historyPath(), text, 0o600)
	}
	if err != nil {
		a.logger.Error(err, "The history of the cards' health cannot be kept")
	}
}

// tell makes events of a change: at the node, and at the pods on the card.
func (a *Agent) tell(c health.Change) {
	kind, reason, text := describe(c)
	a.o.Metrics.flips.WithLabelValues(c.Kind.String()).Inc()
	a.logger.Info("Card changed", "card", c.Card.Minor, "uuid", c.Card.UUID, "what", text)
	a.nodeEvent(kind, reason, text)
	if kind == v1.EventTypeNormal {
		return
	}
	for _, uid := range a.podsOn(c.Card.Minor, c.Card.UUID) {
		if pod := a.pods.Cached(uid); pod != nil {
			a.events.Event(pod, kind, reason, text)
		}
	}
}
