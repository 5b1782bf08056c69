package feed_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/scheduler/feed"
)

const gib = 1024

// heard collects what a feed says.
type heard struct {
	mu      sync.Mutex
	changed []string
	gone    []types.UID
}

func (h *heard) options() feed.Options {
	return feed.Options{
		RecordTimeout: time.Minute,
		Changed:       func(n string) { h.mu.Lock(); h.changed = append(h.changed, n); h.mu.Unlock() },
		Gone:          func(u types.UID) { h.mu.Lock(); h.gone = append(h.gone, u); h.mu.Unlock() },
	}
}

func recorded(name string) *v1.Pod {
	return ledgertest.Pod(name, ledgertest.Memory(12), ledgertest.Recorded("n", ledgertest.Share("app", "n", 0, 12*gib)))
}

// Case 06: every way a pod leaves must free its room.
func TestEveryWayOutFrees(t *testing.T) {
	t.Parallel()
	pod := recorded("a")
	ended := pod.DeepCopy()
	ended.Status.Phase, ended.ResourceVersion = v1.PodFailed, "9"
	again := ledgertest.Pod("a", ledgertest.Memory(2))
	again.UID = "uid-again"
	for name, leave := range map[string]func(cache.ResourceEventHandler){
		"deleted": func(h cache.ResourceEventHandler) { h.OnDelete(pod) },
		"deleted while the watch was down": func(h cache.ResourceEventHandler) {
			h.OnDelete(cache.DeletedFinalStateUnknown{Key: "default/a", Obj: pod})
		},
		"deleted, last seen unbound": func(h cache.ResourceEventHandler) {
			h.OnDelete(cache.DeletedFinalStateUnknown{Key: "default/a", Obj: ledgertest.Pod("a", ledgertest.Memory(12))})
		},
		"ended":                    func(h cache.ResourceEventHandler) { h.OnUpdate(pod, ended) },
		"made anew under its name": func(h cache.ResourceEventHandler) { h.OnUpdate(pod, again) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, h := ledgertest.New(t), &heard{}
			f := feed.New(t.Context(), l, h.options())
			f.NodeHandler().OnAdd(ledgertest.Node("n", 16*gib), true)
			f.PodHandler(t.Context()).OnAdd(pod, true)
			if got := l.View().Node("n").Cards[0].UsedMiB; got != 12*gib {
				t.Fatalf("%d MiB", got)
			}
			h.changed, h.gone = nil, nil
			leave(f.PodHandler(t.Context()))
			if got := l.View().Node("n").Cards[0].UsedMiB; got != 0 {
				t.Errorf("%d MiB", got)
			}
			if !slices.Contains(h.changed, "n") || !slices.Contains(h.gone, pod.UID) {
				t.Errorf("changed %v, gone %v", h.changed, h.gone)
			}
		})
	}
}

// A pod without a record closes its node when its time is up, also when another reader told the ledger
// of it before the feed did.
func TestMissingRecordCloses(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(*ledger.Ledger, *v1.Pod){
		"the feed hears first":       func(*ledger.Ledger, *v1.Pod) {},
		"another reader hears first": func(l *ledger.Ledger, p *v1.Pod) { l.Observe(p) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, h := ledgertest.New(t), &heard{}
				ctx, cancel := context.WithCancel(t.Context())
				defer synctest.Wait()
				defer cancel()
				pod := ledgertest.Pod("a", ledgertest.Memory(12), ledgertest.On("n"))
				before(l, pod)
				client := fake.NewClientset(ledgertest.Node("n", 16*gib), pod)
				factory := informers.NewSharedInformerFactory(client, 0)
				f, err := feed.Start(ctx, l, factory.Core().V1().Pods(), factory.Core().V1().Nodes(), h.options())
				if err != nil {
					t.Fatal(err)
				}
				factory.Start(ctx.Done())
				if err := f.WaitForSync(ctx); err != nil {
					t.Fatal(err)
				}
				time.Sleep(59 * time.Second)
				synctest.Wait()
				if n := l.Node("n"); n.Closed != placement.Open {
					t.Errorf("closed after 59 s: %v", n.Closed)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if n := l.Node("n"); n.Closed != placement.MissingRecord {
					t.Errorf("after 61 s: %v", n.Closed)
				}
				cancel()
				factory.Shutdown()
			})
		})
	}
}
