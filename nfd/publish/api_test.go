package publish_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/nfd/labels"
	"github.com/topscloud/topscloud/nfd/publish"
)

const family, model, count, memory = "enflame.com/gcu.family", "enflame.com/gcu.model", "enflame.com/gcu.count", "enflame.com/gcu.memory"

func node(name string, set map[string]string) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1", ResourceVersion: "1", Labels: set}}
}

type bench struct {
	*publish.NodeLabels
	t    *testing.T
	told []string
}

func newBench(t *testing.T, n *v1.Node) *bench {
	b := &bench{t: t}
	b.NodeLabels = &publish.NodeLabels{
		Client: fake.NewClientset(n), Names: contract.Default(), Node: n.Name,
		Told: func(_ context.Context, o publish.Override) {
			b.told = append(b.told, fmt.Sprintf("%s: %s to %q", o.Key, o.Was, o.Is))
		},
	}
	return b
}

func (b *bench) publish(want bool, r labels.Result) {
	b.t.Helper()
	if changed, err := b.Publish(b.t.Context(), r); err != nil || changed != want {
		b.t.Fatalf("changed %t, %v: want %t", changed, err, want)
	}
}

func (b *bench) node() *v1.Node {
	b.t.Helper()
	n, err := b.Client.CoreV1().Nodes().Get(b.t.Context(), b.Node, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

func (b *bench) label(change map[string]string) {
	b.t.Helper()
	n := b.node()
	maps.Copy(n.Labels, change)
	if _, err := b.Client.CoreV1().Nodes().Update(b.t.Context(), n, metav1.UpdateOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) has(want map[string]string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.node().Labels); diff != "" {
		b.t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestNodeLabels(t *testing.T) {
	t.Parallel()
	admin := map[string]string{"enflame.com/gcu-pool": "prod", "enflame.com/gcu.deploy.device-plugin": "false"}
	with := func(pairs ...string) map[string]string {
		out := maps.Clone(admin)
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	b := newBench(t, node("n1", with(family, "old")))
	b.publish(true, result(labels.Set{family: "SCORPIO", count: "2", model: "S60"}))
	b.has(with(family, "SCORPIO", count, "2", model, "S60"))
	if fmt.Sprint(b.told) != `[enflame.com/gcu.family: old to "SCORPIO"]` {
		t.Errorf("told %q", b.told)
	}
	b.publish(false, result(labels.Set{family: "SCORPIO", count: "2", model: "S60"}))
	if got, err := b.Read(t.Context()); err != nil || got[family] != "SCORPIO" || len(got) != 3 {
		t.Errorf("recorded %v, %v", got, err)
	}

	// Somebody writes over a label; it is set back, and told.
	b.told = nil
	b.label(map[string]string{model: "AAAA"})
	b.publish(true, result(labels.Set{family: "SCORPIO", count: "2", model: "S60"}))
	if fmt.Sprint(b.told) != `[enflame.com/gcu.model: AAAA to "S60"]` {
		t.Errorf("told %q", b.told)
	}

	// A second model comes: what is not true any more goes, what somebody set where nothing is known stays.
	b.told = nil
	b.label(map[string]string{"enflame.com/gcu.product": "by hand", memory: "1"})
	b.publish(true, labels.Result{Labels: labels.Set{count: "3"}, False: []string{memory, model}})
	b.has(with(count, "3", "enflame.com/gcu.product", "by hand"))
	if fmt.Sprint(b.told) != `[enflame.com/gcu.memory: 1 to ""]` {
		t.Errorf("told %q", b.told)
	}

	// The last card goes: only what was recorded goes with it.
	b.label(map[string]string{family: "by hand"})
	b.publish(true, labels.Result{})
	b.has(with("enflame.com/gcu.product", "by hand", family, "by hand"))
	if _, there := b.node().Annotations[b.Names.PublishedLabelsKey]; there {
		t.Error("the record is still there")
	}
	b.publish(false, labels.Result{})
}

func TestNodeLabelsOfAnotherRelease(t *testing.T) {
	t.Parallel()
	n := node("n1", map[string]string{model: "S60"})
	n.Annotations = map[string]string{contract.Default().PublishedLabelsKey: `{"version":"v9"}`}
	b := newBench(t, n)
	for _, r := range []labels.Result{result(set), {}} {
		if _, err := b.Publish(t.Context(), r); err == nil || !strings.Contains(err.Error(), "gcu-published-labels") {
			t.Errorf("published over it: %v", err)
		}
	}
	b.has(map[string]string{model: "S60"})
}

func TestDisown(t *testing.T) {
	t.Parallel()
	b := newBench(t, node("n1", map[string]string{"a": "b"}))
	b.publish(true, result(labels.Set{model: "S60"}))
	for _, want := range []bool{true, false} {
		if had, err := b.Disown(t.Context()); had != want || err != nil {
			t.Errorf("%t, %v: want %t", had, err, want)
		}
	}
	b.publish(false, labels.Result{})
	b.has(map[string]string{"a": "b", model: "S60"})
}

func newFeature(name string) (*publish.NodeFeature, kubernetes.Interface) {
	client := fake.NewClientset(node(name, nil))
	return &publish.NodeFeature{Client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{publish.NodeFeatures: "NodeFeatureList"}), Nodes: client, Node: name, Namespace: "kube-system"}, client
}

func TestNodeFeature(t *testing.T) {
	t.Parallel()
	f, _ := newFeature("n1")
	publishes := func(want bool, r labels.Result) {
		t.Helper()
		if changed, err := f.Publish(t.Context(), r); changed != want || err != nil {
			t.Fatalf("changed %t, %v: want %t", changed, err, want)
		}
	}
	if was, err := f.Read(t.Context()); was != nil || err != nil {
		t.Fatal(was, err)
	}
	publishes(true, result(set))
	publishes(false, result(set))
	object, err := f.Client.Resource(publish.NodeFeatures).Namespace("kube-system").Get(t.Context(), "gcu-features-for-n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "uid-1"}}
	if diff := cmp.Diff(want, object.GetOwnerReferences()); diff != "" || object.GetLabels()["nfd.node.kubernetes.io/node-name"] != "n1" {
		t.Errorf("labels %v, owner (-want +got):\n%s", object.GetLabels(), diff)
	}
	next := maps.Clone(set)
	delete(next, model)
	publishes(true, result(next))
	if got, err := f.Read(t.Context()); err != nil || !maps.Equal(got, next) {
		t.Errorf("%v, %v", got, err)
	}
	publishes(true, labels.Result{})
	publishes(false, labels.Result{})
}

func TestNodeFeatureOfALongName(t *testing.T) {
	t.Parallel()
	f, _ := newFeature(strings.Repeat("n", 64))
	if _, err := f.Publish(t.Context(), result(set)); err == nil || !strings.Contains(err.Error(), "--output=features-file") {
		t.Errorf("a name that is no label value: %v", err)
	}
	f.Node = strings.Repeat("n", 253)
	if n := len(f.Name()); n > 253 {
		t.Errorf("a name of %d characters", n)
	}
}
