package repair_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/repair"
	"github.com/topscloud/topscloud/scheduler/repair/source"
	"github.com/topscloud/topscloud/scheduler/survey"
	"github.com/topscloud/topscloud/scheduler/surveytest"
)

var (
	names   = surveytest.Names
	options = repair.Options{Names: names, Now: surveytest.Now, RecordTimeout: time.Minute}
	sources = []repair.Source{source.Record{}, source.Rest{}}
)

// recorded sets the record's text.
func recorded(p *v1.Pod, text string) *v1.Pod {
	p.Annotations[names.AllocationKey] = text
	return p
}

func plan(pod *v1.Pod, given source.Given, others ...*v1.Pod) (*repair.Proposal, error) {
	h := host()
	s := survey.Of(names, []*v1.Node{h.Object()}, append(others, pod))
	return repair.Plan(s, pod, append([]repair.Source{given}, sources...), len(given) > 0, options)
}

func host() *surveytest.Host { return surveytest.NewHost("t20x4", "n1") }

func uuid(minor int) string { return contract.NormalUUID(host().Machine.Cards[minor].UUID) }

func TestPlan(t *testing.T) {
	h := host()
	share := func(text string) *v1.Pod { return recorded(h.Bare("team", "p", surveytest.Memory("main", 12)), text) }
	full := []*v1.Pod{h.Pod("team", "a", surveytest.Whole("m", 0, 1)), h.Pod("team", "b", surveytest.Memory("m", 24, 2))}
	tests := map[string]struct {
		pod    *v1.Pod
		given  string
		others []*v1.Pod
		cards  string // container:minor:MiB, sorted as the limits are
		source string
		err    string
	}{
		"the uuid is right, the minor is not": {
			pod: share(`{"version":"v1","node":"n1","containers":[{"name":"main","cards":[{"minor":7,"uuid":"` + uuid(2) + `","memoryMiB":5}]}]}`), cards: "main:2:12288", source: "record",
		},
		"the minor is a word that is a number": {
			pod: share(`{"version":"v1","node":"n1","containers":[{"name":"main","cards":[{"minor":"3","memoryMiB":5}]}]}`), cards: "main:3:12288", source: "record",
		},
		"a later version": {
			pod: share(`{"version":"v9","node":"n1","more":{},"containers":[{"name":"main","cards":[{"minor":1,"uuid":"` + uuid(1) + `"}]}]}`), cards: "main:1:12288", source: "record",
		},
		"cut off, and one card has room": {pod: share(`{"version":"v1","no`), others: full, cards: "main:3:12288", source: "the only room beside the other holders"},
		"cut off, and several have": {
			pod: share(`{"version":"v1","no`), err: "the cards of container main are not known: cards 0, 1, 2, 3 have room for it. Look on the node which it uses, and say so: --set main=0",
		},
		"given":                      {pod: share(`{`), given: "main=2", cards: "main:2:12288", source: "given"},
		"given over what is written": {pod: h.Pod("team", "p", surveytest.Memory("main", 12, 0)), given: "main=1:6144,2:6144", cards: "main:1:6144 main:2:6144", source: "given"},
		"given more than the limit":  {pod: share(`{`), given: "main=2:20480", err: "container main, by given: card 2: 20480 MiB are given, the limit makes 12288 of each card"},
		"given of another container": {pod: share(`{`), given: "other=2", err: "container other does not ask for GCU; there are main"},
		"given a card that is full":  {pod: share(`{`), given: "main=2", others: full, err: "card 2 of n1 would be promised twice: of 32768 MiB team/b has 24576 MiB"},
		"given a card held whole":    {pod: share(`{`), given: "main=0", others: full, err: "card 0 of n1 would be promised twice"},
		"given a card there is not":  {pod: share(`{`), given: "main=9", err: "node n1 has no card 9"},
		"not evenly":                 {pod: share(`{`), given: "main=0,1,2,3,", err: `card ""`},
		"whole cards by number":      {pod: recorded(h.Bare("team", "p", surveytest.Work{Name: "main", Resource: names.ResourceWhole, Amount: 2}), `{`), given: "main=0", err: "1 cards are named, the limit says 2"},
		"no record at all":           {pod: h.Bare("team", "p", surveytest.Memory("main", 12)), given: "main=3", cards: "main:3:12288", source: "given"},
		"nothing is wrong":           {pod: h.Pod("team", "p", surveytest.Memory("main", 12, 0)), err: "agrees with node n1: nothing to repair"},
		"the same again":             {pod: h.Pod("team", "p", surveytest.Memory("main", 12, 0)), given: "main=0", err: "says already"},
		"on no node":                 {pod: surveytest.Waiting("team", "p", surveytest.Memory("main", 12)), err: "is on no node yet"},
		"asks for no GCU":            {pod: surveytest.Waiting("team", "p"), err: "asks for no GCU"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var given source.Given
			var err error
			if tt.given != "" {
				given, err = source.Parse([]string{tt.given})
			}
			var p *repair.Proposal
			if err == nil {
				p, err = plan(tt.pod, given, tt.others...)
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			record, err := contract.DecodeAllocation(p.New)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range record.Containers {
				for _, card := range c.Cards {
					got = append(got, fmt.Sprintf("%s:%d:%d", c.Name, card.Minor, card.MemoryMiB))
				}
			}
			if s := strings.Join(got, " "); s != tt.cards || p.Containers[0].Source != tt.source {
				t.Errorf("got %s by %s, want %s by %s", s, p.Containers[0].Source, tt.cards, tt.source)
			}
			// With the record written, the node is open.
			h, fixed := host(), tt.pod.DeepCopy()
			fixed.Annotations[names.AllocationKey] = p.New
			l := survey.Of(names, []*v1.Node{h.Object()}, append(tt.others, fixed)).Ledger(surveytest.Now, time.Minute)
			if err := l.Check(); err != nil || len(l.Node("n1").Problems) > 0 {
				t.Errorf("%v, problems %v", err, l.Node("n1").Problems)
			}
		})
	}
}

func TestHintIsNoProof(t *testing.T) {
	pod := recorded(host().Bare("team", "p", surveytest.Memory("main", 12)), `{`)
	pod.Annotations[names.AssignedMinorKey] = "2"
	_, err := plan(pod, nil)
	if err == nil || !strings.Contains(err.Error(), "annotation enflame.com/gcu-assigned-minor says card 2; other makers' tools write it too") {
		t.Errorf("got %v", err)
	}
}

func TestClear(t *testing.T) {
	h := host()
	good, broken := h.Pod("team", "good", surveytest.Memory("main", 12, 0)), recorded(h.Bare("team", "p", surveytest.Memory("main", 12)), "{")
	s := survey.Of(names, []*v1.Node{h.Object()}, []*v1.Pod{good, broken, h.Bare("team", "bare", surveytest.Memory("main", 1))})
	if _, err := repair.Clear(s, good, options); !errors.Is(err, repair.ErrNothingToDo) {
		t.Errorf("a good record: %v", err)
	}
	p, err := repair.Clear(s, broken, options)
	if err != nil || p.New != "" || p.Old != "{" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestWrite(t *testing.T) {
	pod := recorded(host().Bare("team", "p", surveytest.Memory("main", 12)), `{"version":"v1","node":"n1","containers":[{"name":"main","cards":[{"minor":"1"}]}]}`)
	pod.Annotations[names.AssignedMinorKey] = "2"
	p, err := plan(pod, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset(pod)
	if warning, err := repair.Write(t.Context(), client, names, p, surveytest.Now); err != nil || warning != nil {
		t.Fatal(warning, err)
	}
	now, err := client.CoreV1().Pods("team").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if now.Annotations[names.AllocationKey] != p.New || now.Annotations[names.AssignedMinorKey] != "1" {
		t.Errorf("%v", now.Annotations)
	}
	events, err := client.EventsV1().Events("team").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(events.Items) != 1 {
		t.Fatalf("%d events, %v", len(events.Items), err)
	}
	if e := events.Items[0]; e.Reason != "GCURecordRepaired" || e.Regarding.UID != pod.UID || !strings.Contains(e.Note, "main on card 1 12288 MiB") {
		t.Errorf("%+v", e)
	}
	var b bytes.Buffer
	if err := repair.Draw(p).Text(&b, false); err != nil {
		t.Fatal(err)
	}
	want := `pod team/p on n1
  now:  annotation enflame.com/gcu-allocation: json: cannot unmarshal string
        into Go struct field CardAllocation.containers.cards.minor of type int
  then: container main on card 1 12288 MiB (` + uuid(1) + `)
        known from: record
- {"version":"v1","node":"n1","containers":[{"name":"main","cards":[{"minor":"1"
  }]}]}
+ {"version":"v1","node":"n1","containers":[{"name":"main","cards":[{"minor":1,"
  uuid":"` + uuid(1) + `","memoryMiB":12288}]}]}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
