package survey_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/topscloud/topscloud/gcushare/placement"
	"github.com/topscloud/topscloud/scheduler/survey"
	"github.com/topscloud/topscloud/scheduler/surveytest"
)

func cluster() *fake.Clientset {
	h := surveytest.NewHost("t20x4", "n1")
	ended := h.Pod("team", "ended", surveytest.Memory("main", 8, 0))
	ended.Status.Phase = v1.PodSucceeded
	return fake.NewClientset(h.Object(), h.Pod("team", "p", surveytest.Memory("main", 8, 0)), h.Pod("other", "q", surveytest.Memory("main", 8, 1)),
		h.Bare("team", "web", surveytest.Work{Name: "main"}), ended)
}

// forbid refuses to list a resource; namespace empty means everywhere.
func forbid(c *fake.Clientset, what string, everywhere bool, err error) {
	c.PrependReactor("list", what, func(a clienttesting.Action) (bool, runtime.Object, error) {
		if everywhere || a.GetNamespace() == metav1.NamespaceAll {
			return true, nil, err
		}
		return false, nil, nil
	})
}

func TestRead(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", nil)
	tests := map[string]struct {
		prepare  func(*fake.Clientset)
		holders  bool
		nodes    []string
		pods     string
		complete bool
		unseen   string
		err      string
	}{
		"with all rights":     {prepare: func(*fake.Clientset) {}, pods: "q p web", complete: true},
		"holders only":        {prepare: func(*fake.Clientset) {}, holders: true, pods: "q p", complete: true},
		"one namespace":       {prepare: func(c *fake.Clientset) { forbid(c, "pods", false, forbidden) }, pods: "p web", unseen: "Pods of namespaces other than team may not be read (list pods)."},
		"no pods":             {prepare: func(c *fake.Clientset) { forbid(c, "pods", true, forbidden) }, unseen: "Pods may not be read, not even in namespace team (list pods)."},
		"no nodes":            {prepare: func(c *fake.Clientset) { forbid(c, "nodes", true, forbidden) }, pods: "q p web", unseen: "Nodes may not be read (list nodes): their cards, labels and taints are unknown."},
		"pods do not answer":  {prepare: func(c *fake.Clientset) { forbid(c, "pods", true, errors.New("down")) }, err: "list pods: down"},
		"nodes do not answer": {prepare: func(c *fake.Clientset) { forbid(c, "nodes", true, errors.New("down")) }, err: "list nodes: down"},
		"nodes by name":       {prepare: func(*fake.Clientset) {}, nodes: []string{"n1", "n1"}, pods: "q p web", complete: true},
		"a node by name may not be read": {prepare: func(c *fake.Clientset) {
			c.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, forbidden })
		}, nodes: []string{"n1"}, pods: "q p web", unseen: "Node n1 may not be read (get nodes): its cards, labels and taints are unknown."},
		"a node by name that is not there": {prepare: func(*fake.Clientset) {}, nodes: []string{"n1", "n2"}, err: `get node n2: nodes "n2" not found`},
		"the namespace neither": {prepare: func(c *fake.Clientset) {
			forbid(c, "pods", true, errors.New("down"))
			forbid(c, "pods", false, forbidden)
		}, err: "list pods: down"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := cluster()
			tt.prepare(c)
			s, err := survey.Read(t.Context(), c, surveytest.Names, survey.Scope{Nodes: tt.nodes, Namespace: "team", HoldersOnly: tt.holders})
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var pods []string
			for _, p := range s.Pods {
				pods = append(pods, p.Name)
			}
			if strings.Join(pods, " ") != tt.pods || s.Complete() != tt.complete || strings.Join(s.Unseen, "|") != tt.unseen {
				t.Errorf("got pods %q, complete %t, unseen %q", pods, s.Complete(), s.Unseen)
			}
		})
	}
}

// The ledger closes a node for a missing record when the scheduler does.
func TestLedgerMarksOverdue(t *testing.T) {
	h := surveytest.NewHost("t20x4", "n1")
	p := h.Bare("team", "p", surveytest.Memory("main", 8)) // bound ten seconds ago
	s := survey.Of(surveytest.Names, []*v1.Node{h.Object()}, []*v1.Pod{p})
	for timeout, want := range map[time.Duration]placement.Closure{time.Minute: placement.Open, 10 * time.Second: placement.MissingRecord} {
		if got := s.Ledger(surveytest.Now, timeout).Node("n1").Closed; got != want {
			t.Errorf("after %s: closed %d, want %d", timeout, got, want)
		}
	}
}
