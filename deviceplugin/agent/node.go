package agent

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
)

// The node conditions.
const (
	// ConditionHealthy says whether every card may be used. Message names the cards and what is wrong.
	ConditionHealthy v1.NodeConditionType = "GCUHealthy"
	// ConditionServing says whether every resource is offered to new pods. Message says which is not and why.
	ConditionServing v1.NodeConditionType = "GCUServing"
)

// watchNode reads the Node object now and then: a watch of it would wake every agent at each of kubelet's
// heartbeats.
func (a *Agent) watchNode(ctx context.Context) {
	for {
		a.readNode(ctx)
		// Agents that started together drift apart.
		wait := a.o.NodeInterval + rand.N(a.o.NodeInterval/4+1)
		if !a.knowsNode() {
			wait = min(time.Second, wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (a *Agent) knowsNode() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.node.known
}

func (a *Agent) readNode(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	node, err := a.o.Client.CoreV1().Nodes().Get(ctx, a.o.Node, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		if ctx.Err() == nil {
			a.logger.V(2).Info("The Node object cannot be read", "err", err)
		}
		return
	}
	a.takeNode(node)
	a.openCordons(ctx, node, time.Now())
	if a.o.Engine != nil {
		err := a.o.Engine.Resolves(ctx, node.Status.NodeInfo.ContainerRuntimeVersion, a.o.CDIDir)
		a.mu.Lock()
		changed := text(a.engine) != text(err)
		a.engine = err
		a.mu.Unlock()
		if changed {
			a.trigger()
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (a *Agent) takeNode(node *v1.Node) {
	a.mu.Lock()
	was := a.node
	a.node = nodeFacts{
		known: true, uid: node.UID, sharing: node.Labels[a.o.Names.SharingLabel] == "true",
		cordon: node.Annotations[a.o.Names.CordonKey], annotations: maps.Clone(node.Annotations),
		conditions: node.Status.Conditions, engine: node.Status.NodeInfo.ContainerRuntimeVersion,
	}
	looked := a.looked
	now := a.node
	a.mu.Unlock()
	if !was.known || was.sharing != now.sharing || was.cordon != now.cordon {
		if looked {
			a.setCapacity()
		}
		a.trigger()
	}
}

// publish writes what has changed of the node's annotations and conditions.
func (a *Agent) publish(ctx context.Context) {
	if !a.knowsNode() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	a.mu.Lock()
	report, u, facts, problems := a.report, a.units, a.node, a.problems
	a.mu.Unlock()
	cards := announced(report, u)
	devices, err := contract.EncodeDevices(cards)
	if err != nil {
		return // told when the capacity was set
	}
	want := map[string]string{a.o.Names.DevicesKey: devices}
	if a.serves[share.Slices] {
		want[a.o.Names.SharedCapacityKey] = sharedCapacity(cards, facts.sharing)
	}
	maps.DeleteFunc(want, func(key, value string) bool { return facts.annotations[key] == value })
	if len(want) > 0 {
		a.patchNode(ctx, map[string]any{"metadata": map[string]any{"annotations": want}}, types.MergePatchType)
	}
	healthy, message := summary(report)
	a.setCondition(ctx, facts, condition(ConditionHealthy, healthy, "CardsAreWell", "CardsHaveProblems", message))
	message = "every resource is offered"
	if len(problems) > 0 {
		message = strings.Join(problems, "; ")
	}
	a.setCondition(ctx, facts, condition(ConditionServing, len(problems) == 0, "Offered", "NotOffered", message))
}

// sharedCapacity is the value of the older annotation: healthy slices by minor.
func sharedCapacity(d contract.NodeDevices, sharing bool) string {
	out := map[string]int64{}
	for _, c := range d.Devices {
		if c.Health == "" && sharing {
			out[strconv.Itoa(c.Minor)] = d.SliceCount
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return "{}" // a map of numbers is always encoded
	}
	return string(b)
}

func condition(kind v1.NodeConditionType, is bool, good, bad, message string) v1.NodeCondition {
	const longest = 1024
	if len(message) > longest {
		message = message[:longest] + " …"
	}
	c := v1.NodeCondition{Type: kind, Status: v1.ConditionFalse, Reason: bad, Message: message}
	if is {
		c.Status, c.Reason = v1.ConditionTrue, good
	}
	return c
}

// setCondition writes a condition that differs from the one that is there. It has no heartbeat: who wants to
// know whether the agent lives asks its metrics or kubelet.
func (a *Agent) setCondition(ctx context.Context, facts nodeFacts, c v1.NodeCondition) {
	now := metav1.Now()
	c.LastHeartbeatTime, c.LastTransitionTime = now, now
	for _, there := range facts.conditions {
		if there.Type != c.Type {
			continue
		}
		if there.Status == c.Status && there.Reason == c.Reason && there.Message == c.Message {
			return
		}
		if there.Status == c.Status {
			c.LastTransitionTime = there.LastTransitionTime
		}
	}
	a.patchNode(ctx, map[string]any{"status": map[string]any{"conditions": []v1.NodeCondition{c}}}, types.StrategicMergePatchType, "status")
}

func (a *Agent) patchNode(ctx context.Context, change map[string]any, kind types.PatchType, subresource ...string) {
	patch, err := json.Marshal(change)
	if err == nil {
		var node *v1.Node
		if node, err = a.o.Client.CoreV1().Nodes().Patch(ctx, a.o.Node, kind, patch, metav1.PatchOptions{}, subresource...); err == nil {
			a.o.Metrics.nodeWrites.Inc()
			a.takeNode(node)
			return
		}
	}
	if ctx.Err() == nil {
		a.logger.Error(err, "The Node object cannot be written")
	}
}

func (a *Agent) nodeEvent(kind, reason, message string) {
	a.mu.Lock()
	uid := a.node.uid
	a.mu.Unlock()
	if uid == "" {
		uid = types.UID(a.o.Node) // as kubelet names it
	}
	a.events.Event(&v1.ObjectReference{Kind: "Node", Name: a.o.Node, UID: uid}, kind, reason, message)
}

// podEvent tells something about a pod, once for as long as it stays the same.
func (a *Agent) podEvent(pod *v1.Pod, kind, reason, message string) {
	a.mu.Lock()
	same := a.told[pod.UID] == reason+message
	a.told[pod.UID] = reason + message
	a.mu.Unlock()
	if !same {
		a.events.Event(pod, kind, reason, message)
	}
}
