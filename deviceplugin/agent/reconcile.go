package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/deviceplugin/health"
	"github.com/topscloud/topscloud/deviceplugin/kubelet"
	"github.com/topscloud/topscloud/deviceplugin/kubelet/checkpoint"
	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// reconcile makes what kubelet and the API server are told true of this moment. It may be called at any
// time and does nothing when nothing changed.
func (a *Agent) reconcile(ctx context.Context) {
	node := a.cardsOf()
	if node == nil {
		return
	}
	a.giveRecords(ctx, node)
	if err := a.collect(ctx); err != nil && ctx.Err() == nil {
		a.logger.V(2).Info("Not everything that is gone could be looked up", "err", err)
	}
	node, book := a.cardsOf(), a.arbiter.Book()
	waits := a.changeUnits(node, book)
	node = a.cardsOf() // the units may be others now
	a.mu.Lock()
	report, engine := a.report, a.engine
	a.mu.Unlock()

	file, err := a.reader.Read()
	if err != nil && !checkpoint.Missing(err) {
		a.logger.V(2).Info("Kubelet's checkpoint cannot be read", "err", err)
	}
	live := func(uid types.UID) bool { return node.Holder(uid) != nil }
	held := heldIDs(a.o.Names, file, book, node, live, faultyIn(report), time.Now())
	room := roomOf(node, book, a.alive)
	fine := tooFine(room, a.o.ForceUnit)
	var problems []string
	for _, kind := range a.o.Serve {
		why := closedFor(kind, room, waits, engine)
		if why == "" && kind == share.Memory {
			why = fine
		}
		if why != "" {
			problems = append(problems, why)
		}
		before, _ := a.devices[kind].Get()
		s := supply{
			kind: kind, node: room, counted: counted(node, kind), held: held[kind], open: why == "",
			tooMany: kind == share.Memory && fine != "",
			numa:    numaOf(report), wanted: wantedCards(node, book), before: before,
		}
		list := s.list()
		if a.devices[kind].Set(list) {
			a.logger.V(2).Info("Devices changed", "resource", kind.Resource(a.o.Names), "healthy", healthyIn(list), "total", len(list))
		}
		a.o.Metrics.units(kind.Resource(a.o.Names), free(room, kind), counted(node, kind), healthyIn(list))
	}
	slices.Sort(problems)
	a.mu.Lock()
	a.problems = slices.Compact(problems)
	a.mu.Unlock()
	a.o.Metrics.node(room)
	a.tellBook(book)
	a.publish(ctx)
	a.evict(ctx)
}

// closedFor says why a resource is not offered to new pods, empty if it is. Shares can be given only by
// ticket, so they need an engine that resolves tickets.
func closedFor(kind share.Kind, room *placement.Node, waits string, engine error) string {
	switch {
	case room.Closed != placement.Open && room.Closed != placement.NoGCU:
		return closures[room.Closed]
	case kind.Fractional() && waits != "":
		return waits
	case engine != nil && kind.Fractional():
		return "shares are not offered: " + engine.Error()
	}
	return ""
}

var closures = map[placement.Closure]string{
	placement.BadDevices:    "the cards cannot be announced",
	placement.BadRecord:     "a pod's GCU record cannot be read or contradicts the node; see kubectl gcu why",
	placement.MissingRecord: "a pod runs without a GCU record",
	placement.Overcommitted: "GCU records pass a card's memory; see kubectl gcu repair",
	placement.CordonUnread:  "the cordon annotation cannot be read",
}

func healthyIn(list []kubelet.Device) int {
	n := 0
	for _, d := range list {
		if d.Healthy {
			n++
		}
	}
	return n
}

// numaOf returns the NUMA node of each card, nil where one card's is not known.
func numaOf(r health.Report) map[int]int {
	out := map[int]int{}
	for i := range r.Cards {
		c := &r.Cards[i]
		if !c.Present {
			continue
		}
		if c.Device.NUMA < 0 {
			return nil
		}
		out[c.Minor] = c.Device.NUMA
	}
	return out
}

func wantedCards(node *ledger.Node, book contract.Book) map[int]bool {
	out := map[int]bool{}
	for _, minors := range waiting(node, book) {
		for _, m := range minors {
			out[m] = true
		}
	}
	return out
}

// collectEvery is how often what is gone is looked for where nothing tells of it.
const collectEvery = 30 * time.Second

// collect drops what is gone from the book, at once when the book names pods that the ledger does not.
func (a *Agent) collect(ctx context.Context) error {
	node, book := a.cardsOf(), a.arbiter.Book()
	stale := slices.ContainsFunc(book.Pods, func(p contract.BookPod) bool { return node.Holder(types.UID(p.UID)) == nil })
	if !stale && time.Since(a.collected) < collectEvery {
		return nil
	}
	a.collected = time.Now()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return a.arbiter.Collect(ctx)
}

// summary is the message of the condition GCUHealthy.
func summary(r health.Report) (healthy bool, text string) {
	var parts []string
	byText := map[string][]string{}
	for i := range r.Cards {
		c := &r.Cards[i]
		if problem := c.Problem(); problem != "" {
			byText[problem] = append(byText[problem], fmt.Sprint(c.Minor))
		}
	}
	for _, problem := range slices.Sorted(maps.Keys(byText)) {
		word := "card "
		if len(byText[problem]) > 1 {
			word = "cards "
		}
		parts = append(parts, word+strings.Join(byText[problem], ", ")+": "+problem)
	}
	healthy = len(parts) == 0
	for i := range r.Cards {
		for _, w := range r.Cards[i].Warnings {
			parts = append(parts, fmt.Sprintf("warning: card %d: %s", r.Cards[i].Minor, w.Message))
		}
	}
	for _, f := range r.Host {
		healthy = false
		parts = append([]string{f.Message}, parts...)
	}
	if len(parts) == 0 {
		return true, fmt.Sprintf("all %d cards are well", len(r.Cards))
	}
	return healthy, strings.Join(parts, "; ")
}
