package gcufit

import (
	"fmt"
	"hash/fnv"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/topscloud/topscloud/gcushare/ledger"
)

// problems emits one event for each pod whose record keeps a node closed, and again only when what is
// wrong with it changes.
type problems struct {
	recorder events.EventRecorder

	// mu guards told: by node, what each pod's event said.
	mu   sync.Mutex
	told map[string]map[types.UID]string
}

func newProblems(handle fwk.Handle) *problems {
	return &problems{recorder: handle.EventRecorder(), told: map[string]map[types.UID]string{}}
}

// report takes in a node as it stands; nil is a node that is gone.
func (p *problems) report(name string, n *ledger.Node) {
	var list []ledger.Problem
	if n != nil {
		list = n.Problems
	}
	p.mu.Lock()
	told := p.told[name]
	if len(list) == 0 && len(told) == 0 {
		p.mu.Unlock()
		return
	}
	now := map[types.UID]string{}
	var fresh []ledger.Problem
	for _, problem := range list {
		if problem.Holder == nil {
			continue // told by the pods that make it up
		}
		uid := problem.Holder.UID
		if told[uid] != problem.Text && now[uid] == "" {
			fresh = append(fresh, problem)
		}
		now[uid] = problem.Text
	}
	p.told[name] = now
	if len(now) == 0 {
		delete(p.told, name)
	}
	p.mu.Unlock()
	if p.recorder == nil {
		return
	}
	for _, problem := range fresh {
		h := problem.Holder
		regarding := &v1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: h.Name, UID: h.UID},
		}
		related := &v1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
		note := fmt.Sprintf("%s; node %s takes no new GCU pods until this is repaired or the pod is gone", problem.Text, name)
		p.recorder.Eventf(regarding, related, v1.EventTypeWarning, "GCURecordUnusable", action(problem.Text), "%s", clip(note))
	}
}

// action is different for different texts: the API folds events that differ in their note only into one
// that keeps the first note.
func action(text string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // a hash takes everything
	return fmt.Sprintf("CloseNode-%08x", h.Sum32())
}

// clip keeps a note below the API server's limit of 1024 bytes.
func clip(note string) string {
	const limit = 1000
	if len(note) <= limit {
		return note
	}
	return note[:limit] + "…"
}
