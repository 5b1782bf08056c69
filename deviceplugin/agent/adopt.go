package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/deviceplugin/plugin"
	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/topology"
)

// adopt gives a pod without record one: what the node's book says that its containers have already, as after
// an etcd that was restored from before; else, if choose is set, cards with room. ids are kubelet's choice for the
// container that starts, and matter only where kubelet itself passes whole cards. Without either it returns nil.
//
// The scheduler may be about to place another pod on the same room at this moment. Then two records claim
// it, and the one whose container starts last is refused.
func (a *Agent) adopt(ctx context.Context, pod *v1.Pod, choose bool, resource string, ids []string) (*v1.Pod, error) {
	a.adopting.Lock()
	defer a.adopting.Unlock()
	node := a.cardsOf()
	if node == nil {
		return nil, errors.New("the node's cards are not known yet")
	}
	if h := node.Holder(pod.UID); h != nil && h.State == ledger.Bound {
		// Somebody gave it a record meanwhile.
		return a.pods.Read(ctx, pod.UID, pod.Namespace, pod.Name)
	}
	book := a.arbiter.Book()
	record, err := a.recordFromBook(pod, book)
	given := record != nil
	if err == nil && !given && choose {
		record, err = a.choose(pod, node.Without(pod.UID), book, resource, ids)
	}
	if err != nil || record == nil {
		return nil, err
	}
	adopted, err := a.writeRecord(ctx, pod, record, given)
	if err != nil {
		return nil, fmt.Errorf("write its record: %w", err)
	}
	a.ledger.Observe(adopted)
	if given {
		a.podEvent(adopted, v1.EventTypeNormal, "GCURecordRestored", "the pod's GCU record was gone; the node wrote again what its containers have")
		return adopted, nil
	}
	a.o.Metrics.adopted.Inc()
	a.podEvent(adopted, v1.EventTypeNormal, "GCUAdopted", "the pod came without a GCU record (another scheduler?); the node chose its cards")
	return adopted, nil
}

// adoptForStart is adopt for a container that is about to start.
func (a *Agent) adoptForStart(ctx context.Context, pod *v1.Pod, resource string, ids []string) (*v1.Pod, error) {
	return a.adopt(ctx, pod, true, resource, ids)
}

// recordFromBook returns what the book says that the pod's containers were given, nil if nothing.
func (a *Agent) recordFromBook(pod *v1.Pod, book contract.Book) ([]contract.ContainerAllocation, error) {
	given := map[string][]contract.CardAllocation{}
	for _, t := range book.Tickets {
		if t.PodUID == string(pod.UID) {
			given[t.Container] = t.Cards
		}
	}
	if len(given) == 0 {
		return nil, nil
	}
	limits, _, err := share.Limits(a.o.Names, pod)
	if err != nil {
		return nil, err
	}
	var out []contract.ContainerAllocation
	for _, c := range limits {
		cards, ok := given[c.Name]
		if !ok {
			return nil, fmt.Errorf("its record is gone, and the node's book has other containers of it, not %s: make the pod anew", c.Name)
		}
		out = append(out, contract.ContainerAllocation{Name: c.Name, Cards: cards})
	}
	return out, nil
}

// choose places a pod where there is room on this node.
func (a *Agent) choose(pod *v1.Pod, node *ledger.Node, book contract.Book, resource string, ids []string) ([]contract.ContainerAllocation, error) {
	a.mu.Lock()
	unit := a.units.UnitMiB
	a.mu.Unlock()
	req, err := share.Parse(a.o.Names, pod, share.Defaults{UnitMiB: unit})
	if err != nil {
		return nil, err
	}
	room := roomOf(node, book, a.alive)
	// A node is closed while a record of another pod is missing, and this pod is the one that is to get its own.
	if room.Closed == placement.MissingRecord {
		room.Closed = placement.Open
	}
	if a.direct() && (resource == a.o.Names.ResourceWhole || resource == a.o.Names.ResourceAlias) {
		return passed(room, req, ids)
	}
	plan, why := placement.Choose(room, req)
	if plan == nil {
		return nil, fmt.Errorf("the pod came without a GCU record, and this node has no room for it: %s. Set schedulerName to %s, which knows where there is room",
			why.Text(a.o.Names, req), contract.SchedulerName)
	}
	return plan.Record(room, req), nil
}

// passed makes the record of a pod whose only container with cards gets those that kubelet passes.
func passed(room *placement.Node, req *share.Request, ids []string) ([]contract.ContainerAllocation, error) {
	if len(req.Containers) != 1 {
		return nil, errors.New("with device specs only pods with one container that asks for cards can come without a record")
	}
	var cards topology.Set
	for _, id := range ids {
		minor, err := plugin.ParseID(id)
		if err != nil || !room.FreeSet().Has(minor) {
			return nil, fmt.Errorf("kubelet passes card %s, which is held or not usable", id)
		}
		cards = cards.With(minor)
	}
	p := placement.Plan{Cards: []topology.Set{cards}}
	return p.Record(room, req), nil
}

// writeRecord puts a record onto a pod, if the pod is still the one that was looked at: the API server
// compares UID and version. The older keys go with it, unless the pod has them: those a scheduler wrote tell more,
// such as when. given says that the containers have their cards already.
func (a *Agent) writeRecord(ctx context.Context, pod *v1.Pod, containers []contract.ContainerAllocation, given bool) (*v1.Pod, error) {
	keys := map[string]string{}
	if _, has := pod.Annotations[a.o.Names.AssignedKey]; !has {
		limits, totals, err := share.Limits(a.o.Names, pod)
		if err != nil {
			return nil, err
		}
		keys, err = ledger.OlderKeys(a.o.Names, containers, &share.Request{Containers: limits, Totals: totals}, time.Now())
		if err != nil {
			return nil, err
		}
		if given {
			a.markAssigned(keys, keys)
		}
	}
	text, err := contract.EncodeAllocation(contract.Allocation{Node: a.o.Node, Containers: containers})
	if err != nil {
		return nil, err
	}
	keys[a.o.Names.AllocationKey] = text
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "annotations": keys,
	}})
	if err != nil {
		return nil, err
	}
	return a.o.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
}

// giveRecords gives pods that have no record one before their containers start: until they have it, their room is
// set aside by guess. Where nothing may be chosen for them, those of which the node's book knows what they were
// given still get theirs.
func (a *Agent) giveRecords(ctx context.Context, node *ledger.Node) {
	choose := a.o.Unrecorded == Adopt && !a.direct()
	for _, h := range node.Holders() {
		if h.State != ledger.Unrecorded {
			continue
		}
		pod := a.pods.Cached(h.UID)
		if pod == nil || ledger.Ended(pod) || pod.DeletionTimestamp != nil || pod.Annotations[a.o.Names.AllocationKey] != "" {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		_, err := a.adopt(ctx, pod, choose, "", nil)
		cancel()
		if err != nil {
			a.logger.V(2).Info("A pod came without a record and gets none", "pod", klog.KObj(pod), "err", err)
			a.podEvent(pod, v1.EventTypeWarning, "GCURefused", err.Error())
		}
	}
}
