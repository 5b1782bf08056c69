package usage_test

import (
	"bytes"
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/topscloud/topscloud/scheduler/survey"
	"github.com/topscloud/topscloud/scheduler/surveytest"
	"github.com/topscloud/topscloud/scheduler/usage"
)

func since(p *v1.Pod, d time.Duration) *v1.Pod {
	p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(surveytest.Now.Add(-d))
	return p
}

func TestAdd(t *testing.T) {
	a, b := surveytest.NewHost("s60x8", "gcu-node-1"), surveytest.NewHost("t20x4", "gcu-node-2")
	broken := b.Pod("batch", "broken", surveytest.Memory("main", 4, 3))
	broken.Annotations[surveytest.Names.AllocationKey] = "{"
	s := survey.Of(surveytest.Names, []*v1.Node{a.Object(), b.Object()}, []*v1.Pod{
		since(a.Pod("research", "pretrain-0", surveytest.Whole("trainer", 0, 1)), 30*time.Hour),
		since(a.Pod("serving", "chat-6f9d7c5b8-x2x9z", surveytest.Memory("server", 20, 4)), 90*time.Minute),
		since(b.Pod("serving", "embed-7c44f8d9b-q8w4k", surveytest.Memory("server", 16, 0)), 2*time.Hour),
		b.Bare("batch", "unrecorded", surveytest.Memory("main", 8)),
		broken,
		surveytest.Waiting("serving", "waits", surveytest.Memory("main", 8)),
	})
	l := s.Ledger(surveytest.Now, time.Minute)
	for _, by := range []usage.By{usage.Namespace, usage.Pod, usage.Node} {
		u := usage.Add(s, l, by, surveytest.Now)
		var sum usage.Row
		for _, r := range u.Rows {
			sum.PromisedMiB += r.PromisedMiB
			sum.CardHours += r.CardHours
		}
		// 2 × 42976 + 20480 + 16384 + 8192; 2 × 30 + 20480/42976 × 1.5 + 0.5 × 2 + a few seconds of 0.25.
		if sum.PromisedMiB != 131008 || u.Total.PromisedMiB != 131008 || math.Abs(sum.CardHours-61.7155) > 0.001 {
			t.Errorf("by %s: %d MiB, %f card-hours", by, sum.PromisedMiB, sum.CardHours)
		}
		var out bytes.Buffer
		if err := usage.Draw(u, false).Text(&out, false); err != nil {
			t.Fatal(err)
		}
		surveytest.Golden(t, "testdata/"+string(by)+".txt", out.Bytes())
	}
}
