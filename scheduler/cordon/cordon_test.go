package cordon_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/cordon"
	"github.com/topscloud/topscloud/scheduler/surveytest"
)

var names = surveytest.Names

func cluster() *fake.Clientset {
	h := surveytest.NewHost("t20x4", "gcu-node-1")
	return fake.NewClientset(h.Object(),
		h.Pod("serving", "chat", surveytest.Memory("main", 20, 1)), h.Pod("research", "whole", surveytest.Whole("main", 2)),
		&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "web-1"}})
}

func refs(t *testing.T, list ...string) []cordon.Ref {
	t.Helper()
	var out []cordon.Ref
	for _, text := range list {
		r, err := cordon.ParseRef(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func annotation(t *testing.T, c *fake.Clientset) string {
	t.Helper()
	n, err := c.CoreV1().Nodes().Get(t.Context(), "gcu-node-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n.Annotations[names.CordonKey]
}

func draw(t *testing.T, results []cordon.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := cordon.Draw(results).Text(&b, false); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCloseAndOpen(t *testing.T) {
	c := cluster()
	until := time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)
	results, err := cordon.Close(t.Context(), c, names, refs(t, "gcu-node-1/2", "gcu-node-1/1", "gcu-node-1/3"), "fan to be replaced", &until)
	if err != nil {
		t.Fatal(err)
	}
	want := `card 2 of gcu-node-1 cordoned: no new pod gets any of it.
  Reason: fan to be replaced
  Until 2026-03-01T14:00:00Z; the node's agent opens it then. Where none runs,
  uncordon it by hand.
  Still on it, and staying:
  - research/whole, whole
card 1 of gcu-node-1 cordoned: no new pod gets any of it.
  Reason: fan to be replaced
  Until 2026-03-01T14:00:00Z; the node's agent opens it then. Where none runs,
  uncordon it by hand.
  Still on it, and staying:
  - serving/chat, 20480 MiB
card 3 of gcu-node-1 cordoned: no new pod gets any of it.
  Reason: fan to be replaced
  Until 2026-03-01T14:00:00Z; the node's agent opens it then. Where none runs,
  uncordon it by hand.
  Nobody holds it.
`
	if diff := cmp.Diff(want, draw(t, results)); diff != "" {
		t.Error(diff)
	}
	if got, err := contract.DecodeCordon(annotation(t, c)); err != nil || len(got.Cards) != 3 || got.Cards[0].Minor != 1 {
		t.Errorf("annotation %s: %v", annotation(t, c), err)
	}
	if results, err = cordon.Open(t.Context(), c, names, refs(t, "gcu-node-1/1", "gcu-node-1/0")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("card 1 of gcu-node-1 uncordoned.\ncard 0 of gcu-node-1 was not cordoned.\n", draw(t, results)); diff != "" {
		t.Error(diff)
	}
	if _, err = cordon.Open(t.Context(), c, names, refs(t, "gcu-node-1/2", "gcu-node-1/3")); err != nil || annotation(t, c) != "" {
		t.Errorf("%v, annotation %q: want none", err, annotation(t, c))
	}
}

func TestRefusals(t *testing.T) {
	tests := map[string]struct {
		ref, cordon string
		want        []string
	}{
		"an unknown card":           {ref: "gcu-node-1/9", want: []string{"node gcu-node-1 has no card 9; it has 0, 1, 2, 3"}},
		"an unknown uuid":           {ref: "gcu-node-1/GCU-X", want: []string{"has no card GCU-X; it has 0 GCU-"}},
		"an unknown node":           {ref: "gcu-node-7/0", want: []string{"there is no node gcu-node-7; nodes with GCU cards: gcu-node-1"}},
		"a node without cards":      {ref: "web-1/0", want: []string{"node web-1 announces no GCU cards"}},
		"an unreadable annotation":  {ref: "gcu-node-1/0", cordon: "{", want: []string{"nothing was changed", "kubectl get node gcu-node-1 -o jsonpath=", "kubectl annotate node gcu-node-1 enflame.com/gcu-cordon-"}},
		"one of a later version":    {ref: "gcu-node-1/0", cordon: `{"version":"v9","cards":[]}`, want: []string{`version "v9"`, "nothing was changed"}},
		"a newer field in this one": {ref: "gcu-node-1/0", cordon: `{"version":"v1","cards":[],"more":1}`, want: []string{"nothing was changed"}},
	}
	for name, tt := range tests {
		c := cluster()
		if tt.cordon != "" {
			n, _ := c.CoreV1().Nodes().Get(t.Context(), "gcu-node-1", metav1.GetOptions{})
			n.Annotations[names.CordonKey] = tt.cordon
			if _, err := c.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, open := range []bool{false, true} {
			var err error
			if open {
				_, err = cordon.Open(t.Context(), c, names, refs(t, tt.ref))
			} else {
				_, err = cordon.Close(t.Context(), c, names, refs(t, tt.ref), "", nil)
			}
			for _, part := range tt.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %v, want %q", name, err, part)
				}
			}
			if annotation(t, c) != tt.cordon {
				t.Errorf("%s: the annotation was changed to %q", name, annotation(t, c))
			}
		}
	}
	for _, text := range []string{"n", "n/", "/1", "n/-1", "n/128", "n/x"} {
		if _, err := cordon.ParseRef(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// Administrator A reads the node, B cordons card 0, A's write of card 1 is refused: A must read again, or
// B's cordon would be lost.
func TestConflictIsReadAgain(t *testing.T) {
	c := cluster()
	refused := 0
	c.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if refused++; refused > 1 {
			return false, nil, nil
		}
		n, _ := c.Tracker().Get(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "", "gcu-node-1")
		node := n.(*v1.Node).DeepCopy()
		node.Annotations[names.CordonKey], _ = contract.EncodeCordon(contract.Cordon{Cards: []contract.CordonedCard{{Minor: 0}}})
		_ = c.Tracker().Update(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, node, "")
		return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "gcu-node-1", nil)
	})
	if _, err := cordon.Close(t.Context(), c, names, refs(t, "gcu-node-1/1"), "", nil); err != nil {
		t.Fatal(err)
	}
	if got, err := contract.DecodeCordon(annotation(t, c)); err != nil || len(got.Cards) != 2 {
		t.Errorf("%+v, %v: want both cordons", got, err)
	}
}
