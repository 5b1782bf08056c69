package gcumap_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/topscloud/topscloud/scheduler/gcumap"
	"github.com/topscloud/topscloud/scheduler/survey"
)

// refusal says what an API server refuses.
type refusal struct {
	verb, resource, namespace string // "*" is any
	err                       error
}

func server(t *testing.T, refusals ...refusal) *fake.Clientset {
	t.Helper()
	s := example()
	var objects []runtime.Object
	for _, n := range s.Nodes {
		objects = append(objects, n)
	}
	for _, p := range s.Pods {
		objects = append(objects, p)
	}
	objects = append(objects, &v1.Pod{})
	client := fake.NewClientset(objects...)
	for _, r := range refusals {
		client.PrependReactor(r.verb, r.resource, func(a clienttesting.Action) (bool, runtime.Object, error) {
			return r.namespace == "*" || r.namespace == a.GetNamespace(), nil, r.err
		})
	}
	return client
}

func TestRead(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("no"))
	type want struct {
		nodes, pods int
		unseen      []string
		err         string
	}
	tests := map[string]struct {
		refusals []refusal
		scope    survey.Scope
		want     want
	}{
		"all may be read": {
			scope: survey.Scope{Namespace: "serving"},
			want:  want{nodes: 3, pods: 7},
		},
		"nodes by name, with their pods only": {
			scope: survey.Scope{Nodes: []string{"gcu-node-2", "gcu-node-2"}},
			want:  want{nodes: 1, pods: 2},
		},
		"a node that does not exist is an error": {
			scope: survey.Scope{Nodes: []string{"gcu-node-1", "gcu-node-9"}},
			want:  want{err: `get node gcu-node-9: nodes "gcu-node-9" not found`},
		},
		"pods of one namespace only": {
			refusals: []refusal{{"list", "pods", "", forbidden}},
			scope:    survey.Scope{Namespace: "serving"},
			want:     want{nodes: 3, pods: 4, unseen: []string{"Pods of namespaces other than serving may not be read."}},
		},
		"pods of one namespace only, on two nodes": {
			refusals: []refusal{{"list", "pods", "", forbidden}},
			scope:    survey.Scope{Namespace: "serving", Nodes: []string{"gcu-node-1", "gcu-node-2"}},
			want:     want{nodes: 2, pods: 4, unseen: []string{"Pods of namespaces other than serving may not be read."}},
		},
		"no pods at all": {
			refusals: []refusal{{"list", "pods", "*", forbidden}},
			scope:    survey.Scope{Namespace: "serving"},
			want:     want{nodes: 3, unseen: []string{"Pods may not be read, neither in all namespaces nor in serving."}},
		},
		"no nodes": {
			refusals: []refusal{{"list", "nodes", "*", forbidden}},
			want:     want{pods: 7, unseen: []string{"Nodes may not be listed: cards and their memory are unknown."}},
		},
		"a named node may not be read": {
			refusals: []refusal{{"get", "nodes", "*", forbidden}},
			scope:    survey.Scope{Nodes: []string{"gcu-node-2"}},
			want:     want{pods: 2, unseen: []string{"Node gcu-node-2 may not be read: its cards and their memory are unknown."}},
		},
		"nothing may be read": {
			refusals: []refusal{{"list", "nodes", "*", forbidden}, {"list", "pods", "*", forbidden}},
			want:     want{err: "neither nodes nor pods may be read"},
		},
		"the API does not answer": {
			refusals: []refusal{{"list", "pods", "*", errors.New("connection refused")}},
			want:     want{err: "list pods: connection refused"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := gcumap.Read(t.Context(), server(t, tc.refusals...), names, tc.scope)
			if tc.want.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want.err) {
					t.Fatalf("got error %v, want %q", err, tc.want.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := want{nodes: len(s.Nodes), pods: len(s.Pods), unseen: build(s).Incomplete}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
