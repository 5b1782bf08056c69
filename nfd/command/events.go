package command

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// quiet is how long the same event is not told again.
const quiet = time.Hour

// Events tells events of a node, each at once: there are few, and a program that runs once has no time for a
// queue.
type Events struct {
	client kubernetes.Interface
	node   string

	mu   sync.Mutex // guards told
	told map[string]time.Time
}

// NewEvents returns the events of a node.
func NewEvents(client kubernetes.Interface, node string) *Events {
	return &Events{client: client, node: node, told: map[string]time.Time{}}
}

// Event implements discovery.Events.
func (e *Events) Event(ctx context.Context, kind, reason, message string) {
	now := time.Now()
	e.mu.Lock()
	again := now.Sub(e.told[message]) < quiet
	if !again {
		e.told[message] = now
	}
	e.mu.Unlock()
	if again {
		return
	}
	at := metav1.NewTime(now)
	event := &v1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: e.node + ".", Namespace: metav1.NamespaceDefault},
		// Kubelet names a node's uid like this, and kubectl describe looks for both.
		InvolvedObject: v1.ObjectReference{Kind: "Node", Name: e.node, UID: types.UID(e.node)},
		Type:           kind, Reason: reason, Message: message, Source: v1.EventSource{Component: program, Host: e.node},
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := e.client.CoreV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		klog.FromContext(ctx).Info("An event could not be told", "reason", reason, "message", message, "err", err)
	}
}
