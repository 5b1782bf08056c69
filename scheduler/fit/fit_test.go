package fit_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/config"
	"github.com/topscloud/topscloud/scheduler/fit"
	"github.com/topscloud/topscloud/scheduler/screen"
	"github.com/topscloud/topscloud/scheduler/survey"
	"github.com/topscloud/topscloud/scheduler/surveytest"
)

func cluster() *survey.Survey {
	a := surveytest.NewHost("s60x8-2sw", "gcu-node-1")
	b := surveytest.NewHost("t20x4", "gcu-node-2")
	b.Cordon = []contract.CordonedCard{{Minor: 3}}
	web := &v1.Node{}
	web.Name = "web-1"
	return survey.Of(surveytest.Names, []*v1.Node{a.Object(), b.Object(), web}, []*v1.Pod{
		a.Pod("research", "pretrain-0", surveytest.Whole("main", 0, 1, 2, 3)),
		a.Pod("serving", "chat", surveytest.Memory("main", 30, 4)),
		b.Pod("serving", "embed", surveytest.Memory("main", 20, 0)),
	})
}

func weights(t *testing.T) placement.Weights {
	t.Helper()
	args, err := config.Decode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return args.Weights
}

func TestTry(t *testing.T) {
	tests := map[string]fit.Request{
		"shares":  {Kind: share.Memory, Amount: 12, Replicas: 3},
		"spread":  {Kind: share.Memory, Amount: 12, Replicas: 4, Policy: "spread"},
		"pairs":   {Kind: share.Memory, Amount: 60, Cards: 2, Topology: contract.TopologySameSwitch, Replicas: 4},
		"whole":   {Kind: share.Whole, Amount: 4, Topology: contract.TopologySameSwitch, Replicas: 1},
		"one":     {Kind: share.Slices, Amount: 2, Replicas: 1},
		"model":   {Kind: share.Whole, Amount: 4, Replicas: 1, NodeSelector: map[string]string{"enflame.com/gcu.model": "T20"}},
		"nowhere": {Kind: share.Whole, Amount: 1, Replicas: 1, NodeSelector: map[string]string{"enflame.com/gcu.model": "X"}},
	}
	for name, r := range tests {
		t.Run(name, func(t *testing.T) {
			s := cluster()
			l := s.Ledger(surveytest.Now, time.Minute)
			before := l.Dump()
			trial, err := fit.Try(s, l, r, weights(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, l.Dump()); diff != "" {
				t.Errorf("the account changed: %s", diff)
			}
			checkRoom(t, l, trial)
			var b bytes.Buffer
			if err := fit.Draw(trial, false).Text(&b, false); err != nil {
				t.Fatal(err)
			}
			surveytest.Golden(t, "testdata/"+name+".txt", b.Bytes())
			for line := range strings.Lines(b.String()) {
				if screen.Columns(strings.TrimSuffix(line, "\n")) > screen.Width {
					t.Errorf("too long: %s", line)
				}
			}
		})
	}
}

// checkRoom adds the placements up against the cards by hand.
func checkRoom(t *testing.T, l *ledger.Ledger, trial *fit.Trial) {
	t.Helper()
	taken := map[string]map[int]int64{}
	for _, p := range trial.Placements {
		if taken[p.Node] == nil {
			taken[p.Node] = map[int]int64{}
		}
		n := l.Node(p.Node)
		for _, minor := range p.Minors {
			taken[p.Node][minor] += p.MiB
			if card := n.Cards[n.Index(minor)]; taken[p.Node][minor] > card.FreeMiB() {
				t.Errorf("card %d of %s: %d MiB given, %d free", minor, p.Node, taken[p.Node][minor], card.FreeMiB())
			}
		}
	}
}

func TestRequestsThatNoNodeCouldMeet(t *testing.T) {
	tests := map[string]struct {
		request fit.Request
		want    string
	}{
		"nothing":        {fit.Request{Kind: share.Memory, Replicas: 1}, "want at least 1"},
		"no multiple":    {fit.Request{Kind: share.Memory, Amount: 5, Cards: 2, Replicas: 1}, "want a multiple of enflame.com/gcu-cards"},
		"cards of cards": {fit.Request{Kind: share.Whole, Amount: 2, Cards: 2, Replicas: 1}, "which no container asks for"},
		"policy":         {fit.Request{Kind: share.Memory, Amount: 1, Policy: "pack", Replicas: 1}, "want binpack, spread"},
	}
	for name, tt := range tests {
		s := cluster()
		if _, err := fit.Try(s, s.Ledger(surveytest.Now, time.Minute), tt.request, weights(t)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
