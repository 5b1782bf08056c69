package gcufit

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/gcushare/ledger/ledgertest"
)

func marshal(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// lockedAPI is the API of a bare world for many goroutines. It loses some answers.
type lockedAPI struct {
	kubernetes.Interface
	corev1.CoreV1Interface
	corev1.PodInterface
	mu sync.Mutex
	w  *world
}

func (a *lockedAPI) CoreV1() corev1.CoreV1Interface  { return a }
func (a *lockedAPI) Pods(string) corev1.PodInterface { return a }

func (a *lockedAPI) Bind(_ context.Context, b *v1.Binding, _ metav1.CreateOptions) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch rand.IntN(4) {
	case 0:
		return answerRefused(a.w, b)
	case 1:
		return answer504AndStore(a.w, b.DeepCopy())
	}
	return a.w.bind(b.DeepCopy())
}

func (a *lockedAPI) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1.Pod, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.w.pods[name], nil
}

// Case 14, the large form: one goroutine runs the scheduling cycles of 50 pods, eight send Bindings, and
// the feed hears nothing until long after; two others keep asking hints and taking views. After each
// stored Binding the world sums up the cards (checkBound).
func TestBurstOfFiftyPods(t *testing.T) {
	f := newFixture(t, ledgertest.Node("n1", 16*gib, 16*gib), ledgertest.Node("n2", 16*gib, 16*gib))
	api := &lockedAPI{w: f.w}
	f.core.client = api
	var pods []*v1.Pod
	for i := range 50 {
		pod := ledgertest.Pod(fmt.Sprintf("p%02d", i), ledgertest.Memory(int64(2+i%5)))
		f.create(pod)
		pods = append(pods, f.w.pods[pod.Name])
	}
	for f.podInformer.pump() { // the store knows them; neither listener does
	}
	flights := make(chan *flight)
	var binders, others sync.WaitGroup
	for range 8 {
		binders.Go(func() {
			for x := range flights {
				if s := f.plugin.Bind(t.Context(), x.state, x.pod, x.node); !s.IsSuccess() {
					f.plugin.Unreserve(t.Context(), x.state, x.pod, x.node)
				}
			}
		})
	}
	done := make(chan struct{})
	for range 2 {
		others.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if _, err := f.plugin.afterPod(klog.Background(), pods[0], pods[1], nil); err != nil {
						t.Error(err)
					}
					f.ledger.View()
				}
			}
		})
	}
	for _, pod := range pods {
		state := newState()
		if _, s := f.plugin.PreFilter(t.Context(), state, pod, nil); !s.IsSuccess() {
			t.Fatal(s.AsError())
		}
		for _, name := range []string{"n1", "n2"} {
			if f.plugin.Filter(t.Context(), state, pod, nodeInfo{node: f.w.nodes[name]}) != nil {
				continue
			}
			if f.plugin.Reserve(t.Context(), state, pod, name).IsSuccess() {
				flights <- &flight{pod: pod, state: state, node: name}
				break
			}
		}
	}
	close(flights)
	binders.Wait()
	close(done)
	others.Wait()
	f.deliverAll()
	for _, p := range f.w.live(bound) {
		if h := f.ledger.Holder(p.UID); h == nil {
			t.Errorf("%s runs and holds nothing", p.Name)
		}
	}
	if n := len(f.w.live(bound)); n < 10 {
		t.Errorf("only %d pods were bound", n)
	}
}
