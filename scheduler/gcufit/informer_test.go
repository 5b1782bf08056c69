package gcufit

import (
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// informer is a shared informer seen from its two listeners, the feed and the scheduler's own handlers
// (which call the hints). The store runs behind the API, and each listener runs behind the store at its
// own pace; each gets its notifications in order.
type informer struct {
	cache.SharedIndexInformer
	log     *[]change
	at      int // changes of the log taken in
	version string
	store   map[string]any
	feed    listener
	hints   listener
}

type listener struct {
	queue   []notification
	deliver func(notification)
}

// notification is an addition (no old), an update, or a deletion (no new).
type notification struct{ old, new any }

func name(obj any) string {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	return obj.(metav1.Object).GetName()
}

// toHandler gives a notification to a handler as client-go does.
func toHandler(h cache.ResourceEventHandler) func(notification) {
	return func(n notification) {
		switch {
		case n.old == nil:
			h.OnAdd(n.new, false)
		case n.new == nil:
			h.OnDelete(n.old)
		default:
			h.OnUpdate(n.old, n.new)
		}
	}
}

func (i *informer) tell(n notification) {
	i.feed.queue = append(i.feed.queue, n)
	i.hints.queue = append(i.hints.queue, n)
}

// pump brings the store one change on. It reports whether there was one.
func (i *informer) pump() bool {
	if i.at == len(*i.log) {
		return false
	}
	c := (*i.log)[i.at]
	i.at++
	key := name(c.obj)
	i.version = c.obj.(metav1.Object).GetResourceVersion()
	old, known := i.store[key]
	switch {
	case c.deleted && known:
		delete(i.store, key)
		i.tell(notification{old: c.obj})
	case c.deleted:
	case known:
		i.store[key] = c.obj
		i.tell(notification{old: old, new: c.obj})
	default:
		i.store[key] = c.obj
		i.tell(notification{new: c.obj})
	}
	return true
}

// pumpAll brings the store up to date, and tells the listeners nothing yet.
func (i *informer) pumpAll() {
	for i.pump() {
	}
}

// relist is a watch that broke: what happened since is seen by its result only.
func (i *informer) relist(list map[string]any, version string) {
	i.at, i.version = len(*i.log), version
	for _, key := range slices.Sorted(maps.Keys(i.store)) {
		if _, still := list[key]; !still {
			i.tell(notification{old: cache.DeletedFinalStateUnknown{Key: "default/" + key, Obj: i.store[key]}})
			delete(i.store, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(list)) {
		old, known := i.store[key]
		i.store[key] = list[key]
		if known {
			i.tell(notification{old: old, new: list[key]})
		} else {
			i.tell(notification{new: list[key]})
		}
	}
}

func (l *listener) next() bool {
	if len(l.queue) == 0 {
		return false
	}
	n := l.queue[0]
	l.queue = l.queue[1:]
	l.deliver(n)
	return true
}

func (i *informer) GetStore() cache.Store { return informerStore{i: i} }

// LastSyncResourceVersion is the reflector's, which may be ahead of the store.
func (i *informer) LastSyncResourceVersion() string {
	if n := len(*i.log); n > i.at {
		return (*i.log)[n-1].obj.(metav1.Object).GetResourceVersion()
	}
	return i.version
}

type informerStore struct {
	cache.Store
	i *informer
}

func (s informerStore) LastStoreSyncResourceVersion() string { return s.i.version }

func (s informerStore) List() []any {
	var out []any
	for _, key := range slices.Sorted(maps.Keys(s.i.store)) {
		out = append(out, s.i.store[key])
	}
	return out
}

func (s informerStore) GetByKey(key string) (any, bool, error) {
	obj, ok := s.i.store[key[len("default/"):]]
	return obj, ok, nil
}

// lists returns what a list of the API shows now.
func (w *world) lists() (pods, nodes map[string]any, version string) {
	pods, nodes = map[string]any{}, map[string]any{}
	for _, p := range w.live(nil) {
		pods[p.Name] = p
	}
	for n, node := range w.nodes {
		nodes[n] = node
	}
	return pods, nodes, strconv.FormatUint(w.rv, 10)
}

func podOf(obj any) *v1.Pod {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	p, _ := obj.(*v1.Pod)
	return p
}
