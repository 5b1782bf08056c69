package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/deviceplugin/agent"
	"github.com/topscloud/topscloud/test/integration/nodetest"
)

const (
	memory = nodetest.Memory
	slice  = nodetest.Slice
	whole  = nodetest.Whole
)

var names = nodetest.Names

type container = nodetest.Container

// node is a node whose agent can be cut off from the API server.
type node struct {
	*nodetest.Node
	t *testing.T
	// down makes the API server be away for the agent.
	down     atomic.Bool
	requests requests
}

// requests counts what the agent asks of the API server, as "VERB resource".
type requests struct {
	mu     sync.Mutex
	counts map[string]int
}

func (r *requests) note(q *http.Request) {
	parts := strings.Split(strings.Trim(q.URL.Path, "/"), "/")
	verb, resource := q.Method, ""
	for i, p := range parts {
		if p == "pods" || p == "nodes" || p == "events" {
			if resource = p; verb == http.MethodGet && i == len(parts)-1 {
				verb = "LIST"
				if q.URL.Query().Get("watch") != "" {
					verb = "WATCH"
				}
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	r.counts[verb+" "+resource]++
}

func (r *requests) count(what string) int { return r.all()[what] }

func (r *requests) all() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}

func (r *requests) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts = nil
}

// RoundTrip stands between the agent and the API server.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// wire lets the agent's requests through unless the API server is to be away; those that are open, like
// watches, are cut when it goes.
func (n *node) wire(rt http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		n.requests.note(r)
		if n.down.Load() {
			return nil, errors.New("the API server is away")
		}
		return rt.RoundTrip(r)
	})
}

// newNode makes a node of four cards of 32 GiB and starts its agent. change, which may be nil, edits the
// agent's options at each start.
func newNode(t *testing.T, change func(*agent.Options)) *node { return newNodeOf(t, "t20x4", change) }

func newNodeOf(t *testing.T, machine string, change func(*agent.Options)) *node {
	t.Helper()
	n := &node{t: t}
	n.Node = nodetest.New(t, nodetest.Options{Machine: machine, Change: change, Wrap: n.wire})
	return n
}

// prefers waits until the agent would have kubelet choose these whole cards: it has seen the record that waits for
// them. Kubelet chooses once for a pod, so that a test must not admit one before.
func (n *node) prefers(ids ...string) {
	n.t.Helper()
	n.Until("the record is seen", func(context.Context) error {
		got, err := n.Kubelet.Prefers(whole, len(ids))
		if err == nil && !slices.Equal(got, ids) {
			err = fmt.Errorf("the agent prefers %v, want %v", got, ids)
		}
		return err
	})
}

func (n *node) object() *v1.Node {
	n.t.Helper()
	out, err := nodetest.Admin.CoreV1().Nodes().Get(n.t.Context(), n.Name, metav1.GetOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return out
}

// condition waits until a node condition has a status, and returns its message.
func (n *node) condition(kind v1.NodeConditionType, status v1.ConditionStatus) string {
	n.t.Helper()
	var message string
	n.Until(fmt.Sprintf("condition %s is %s", kind, status), func(context.Context) error {
		for _, c := range n.object().Status.Conditions {
			if c.Type == kind {
				if message = c.Message; c.Status == status {
					return nil
				}
				return fmt.Errorf("%s: %s", c.Status, c.Message)
			}
		}
		return errors.New("not there")
	})
	return message
}

// event waits for an event whose message has some words, about a pod or, with "", about the node.
func (n *node) event(uid types.UID, words string) {
	n.t.Helper()
	n.Until("an event says "+words, func(ctx context.Context) error {
		list, err := nodetest.Admin.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var seen []string
		for _, e := range list.Items {
			if uid == "" && e.InvolvedObject.Name == n.Name || uid != "" && e.InvolvedObject.UID == uid {
				if strings.Contains(e.Message, words) {
					return nil
				}
				seen = append(seen, e.Reason+": "+e.Message)
			}
		}
		return fmt.Errorf("events: %q", seen)
	})
}

// cgroup makes the node's kernel have, or not have, a process of a pod.
func (n *node) cgroup(pod *v1.Pod, alive bool) {
	n.t.Helper()
	dir := filepath.Join(n.Root, "host/sys/fs/cgroup/kubepods/burstable", "pod"+string(pod.UID))
	err := os.RemoveAll(dir)
	if alive {
		if err = os.MkdirAll(filepath.Join(dir, "c1"), 0o755); err == nil {
			err = os.WriteFile(filepath.Join(dir, "c1/cgroup.procs"), []byte("1234\n"), 0o644)
		}
	}
	if err != nil {
		n.t.Fatal(err)
	}
}
