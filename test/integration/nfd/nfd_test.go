package nfd_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/nfd/command"
	"github.com/topscloud/topscloud/nfd/discovery"
	"github.com/topscloud/topscloud/nfd/labels"
	"github.com/topscloud/topscloud/nfd/publish"
	"github.com/topscloud/topscloud/nfd/source"
)

// rig is one node with its discovery.
type rig struct {
	t       *testing.T
	node    string
	control string
	output  publish.Output
	client  kubernetes.Interface
	cards   *slow
	d       *discovery.Discovery
	stop    func()
}

// slow is a host that takes its time to answer, as a driver does after it was loaded.
type slow struct {
	*source.Reader
	mu    sync.Mutex // guards delay
	delay time.Duration
}

func (s *slow) Read(ctx context.Context) (labels.Facts, error, error) {
	s.mu.Lock()
	delay := s.delay
	s.mu.Unlock()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return s.Reader.Read(ctx)
}

func newRig(t *testing.T, machine string, nodeLabels map[string]string, output string) *rig {
	t.Helper()
	r := &rig{t: t, node: newNode(t, nodeLabels), control: filepath.Join(t.TempDir(), "faults")}
	config := as(t, r.node)
	r.client = kubernetes.NewForConfigOrDie(config)
	switch output {
	case publish.NameNodeLabels:
		r.output = &publish.NodeLabels{Client: r.client, Names: names, Node: r.node}
	case publish.NameNodeFeature:
		r.output = &publish.NodeFeature{Client: dynamic.NewForConfigOrDie(config), Nodes: r.client, Node: r.node, Namespace: "kube-system"}
	}
	reader, err := source.Open(source.Options{Order: []string{"sim"}, Machine: machine, Node: r.node, ControlFile: r.control, Interval: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r.cards = &slow{Reader: reader}
	r.d = r.new()
	return r
}

func (r *rig) new() *discovery.Discovery {
	r.t.Helper()
	d, err := discovery.New(discovery.Options{
		Source: r.cards, Output: r.output, Node: r.node, Client: r.client, Events: eventTeller{r.client, r.node},
		Refresh: 50 * time.Millisecond, RemovalDelay: 200 * time.Millisecond,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

// eventTeller tells events the way the program does, with the rights that it has.
type eventTeller struct {
	client kubernetes.Interface
	node   string
}

func (e eventTeller) Event(ctx context.Context, kind, reason, message string) {
	command.NewEvents(e.client, e.node).Event(ctx, kind, reason, message)
}

func (r *rig) once() {
	r.t.Helper()
	if err := r.d.Once(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// start runs a new process's worth of discovery.
func (r *rig) start() {
	r.d = r.new()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	d := r.d
	go func() {
		defer close(done)
		d.Run(ctx)
	}()
	stopped := false
	r.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			<-done
		}
	}
	r.t.Cleanup(r.stop)
}

func (r *rig) ready() {
	r.t.Helper()
	until(r.t, "discovery is ready", func(context.Context) error { return r.d.Ready() })
}

func (r *rig) faults(lines ...string) {
	r.t.Helper()
	faults, err := sim.ParseFaults(strings.Join(lines, "\n"))
	if err == nil {
		err = sim.WriteFaults(r.control, faults...)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// removals watches something and collects the labels that went away from it.
type removals struct {
	mu     sync.Mutex // guards both
	last   map[string]string
	gone   []string
	events int
}

func (m *removals) see(event watch.Event, of func(event watch.Event) map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := of(event)
	if event.Type == watch.Deleted {
		now = nil
	}
	for key := range m.last {
		if _, there := now[key]; !there {
			m.gone = append(m.gone, key)
		}
	}
	m.last = now
	m.events++
}

func (m *removals) all() ([]string, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.gone), m.events
}

func (m *removals) follow(t *testing.T, w watch.Interface, err error, of func(event watch.Event) map[string]string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for event := range w.ResultChan() {
			if event.Type != watch.Error { // the test has ended
				m.see(event, of)
			}
		}
	})
	t.Cleanup(func() {
		w.Stop()
		wg.Wait()
	})
}

func (r *rig) watchNode() *removals {
	r.t.Helper()
	m := &removals{}
	w, err := admin.CoreV1().Nodes().Watch(r.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + r.node})
	m.follow(r.t, w, err, func(e watch.Event) map[string]string { return e.Object.(*v1.Node).Labels })
	return m
}

// Discovery chooses by what there is. It runs before the tests that bring NFD.
func TestAuto(t *testing.T) {
	node := newNode(t, nil)
	once := func(output string) {
		t.Helper()
		cmd := command.New(func(string) string { return "" })
		cmd.SetArgs([]string{
			"--oneshot", "--output=" + output, "--output-file=" + filepath.Join(t.TempDir(), "none", "gcu"), "--kubeconfig=" + cluster.Kubeconfig(),
			"--device-source=sim", "--machine=s60x8", "--node-name=" + node, "--host-root=" + t.TempDir(),
		})
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	once(publish.NameAuto)
	n := getNode(t, node)
	if n.Labels["enflame.com/gcu.memory"] != "41984" || n.Annotations[names.PublishedLabelsKey] == "" {
		t.Fatalf("without NFD: %v, %v", n.Labels, n.Annotations)
	}
	nfd(t)
	until(t, "the API server has NodeFeatures", func(ctx context.Context) error {
		_, err := objects.Resource(publish.NodeFeatures).List(ctx, metav1.ListOptions{})
		return err
	})
	once(publish.NameAuto)
	after := getNode(t, node)
	if after.Annotations[names.PublishedLabelsKey] != "" || !maps.Equal(after.Labels, n.Labels) {
		t.Errorf("left to NFD: %v, %v", after.Labels, after.Annotations)
	}
	object := feature(t, node)
	set, _, err := unstructured.NestedStringMap(object.Object, "spec", "labels")
	if err != nil || set["enflame.com/gcu.count"] != "8" {
		t.Errorf("%v, %v", set, err)
	}
}

func feature(t *testing.T, node string) *unstructured.Unstructured {
	t.Helper()
	object, err := objects.Resource(publish.NodeFeatures).Namespace("kube-system").Get(t.Context(), "gcu-features-for-"+node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// Case 31: labels of others stay, a stale one is corrected, nothing flaps, and with the last card only what was
// written goes.
func TestCase31OnlyItsOwnLabels(t *testing.T) {
	t.Parallel()
	theirs := map[string]string{"enflame.com/gcu-pool": "prod", "enflame.com/gcu.deploy.device-plugin": "false", "enflame.com/gcushare": "true", "enflame.com/gcu.present": "true"}
	start := maps.Clone(theirs)
	start["enflame.com/gcu.family"] = "old"
	r := newRig(t, "s60x8", start, publish.NameNodeLabels)
	version := ""
	for round := range 5 {
		r.once()
		n := getNode(t, r.node)
		for key, value := range theirs {
			if n.Labels[key] != value {
				t.Errorf("round %d: %s is %q, it was %s", round, key, n.Labels[key], value)
			}
		}
		if n.Labels["enflame.com/gcu.family"] != "SCORPIO" || n.Labels["enflame.com/gcu.count"] != "8" {
			t.Errorf("round %d: %v", round, n.Labels)
		}
		if version != "" && version != n.ResourceVersion {
			t.Errorf("round %d wrote the node", round)
		}
		version = n.ResourceVersion
	}
	events, err := admin.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + r.node})
	if err != nil || len(events.Items) != 1 || !strings.Contains(events.Items[0].Message, "enflame.com/gcu.family was old") {
		t.Errorf("events %v, %v", events.Items, err)
	}
	var all []string
	for card := range 8 {
		all = append(all, fmt.Sprint("unplug ", card))
	}
	r.faults(all...)
	r.start()
	until(t, "the labels are gone", func(context.Context) error {
		if is := getNode(t, r.node).Labels; !maps.Equal(is, theirs) {
			return errors.New(cmp.Diff(theirs, is))
		}
		return nil
	})
	if n := getNode(t, r.node); n.Annotations[names.PublishedLabelsKey] != "" {
		t.Errorf("annotations %v", n.Annotations)
	}
}

// Case 30: the process restarts, also while the driver is slow, hangs or is not loaded. The watch shows no
// removal, and with direct labels not one write.
func TestCase30RestartsAreNotSeen(t *testing.T) {
	t.Parallel()
	nfd(t)
	for _, output := range []string{publish.NameNodeLabels, publish.NameNodeFeature} {
		r := newRig(t, "s60x8", nil, output)
		r.start()
		r.ready()
		seen := r.watchNode()
		first := getNode(t, r.node)
		was, err := r.output.Read(t.Context())
		if err != nil || was["enflame.com/gcu.count"] != "8" {
			t.Fatalf("%s: %v, %v", output, was, err)
		}
		var uid types.UID
		if output == publish.NameNodeFeature {
			uid = feature(t, r.node).GetUID()
		}
		for _, fault := range []string{"", "hang 3", "unreadable 5", "driver none", ""} {
			r.stop()
			r.faults(strings.Split(fault, "\n")...)
			r.cards.mu.Lock()
			r.cards.delay = 300 * time.Millisecond
			r.cards.mu.Unlock()
			r.start()
			if fault == "driver none" {
				until(t, "the driver is missed", func(context.Context) error {
					if err := r.d.Ready(); err == nil || !strings.Contains(err.Error(), "driver") {
						return fmt.Errorf("ready: %v", err)
					}
					return nil
				})
			} else {
				r.ready()
			}
			if is, err := r.output.Read(t.Context()); err != nil || !maps.Equal(is, was) {
				t.Errorf("%s, %q: %v (-was +is):\n%s", output, fault, err, cmp.Diff(was, is))
			}
		}
		if gone, events := seen.all(); len(gone) > 0 || events > 1 {
			t.Errorf("%s: %d events, gone %v", output, events, gone)
		}
		if n := getNode(t, r.node); n.ResourceVersion != first.ResourceVersion {
			t.Errorf("%s: the node was written", output)
		}
		if output == publish.NameNodeFeature && feature(t, r.node).GetUID() != uid {
			t.Error("the object is another one")
		}
	}
}

// The object is as NFD's API wants it, is owned by the Node, follows the cards and goes with the last one.
func TestNodeFeatureOwnedByTheNode(t *testing.T) {
	t.Parallel()
	nfd(t)
	r := newRig(t, "mixed", nil, publish.NameNodeFeature)
	r.once()
	object := feature(t, r.node)
	want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: r.node, UID: getNode(t, r.node).UID}}
	if diff := cmp.Diff(want, object.GetOwnerReferences()); diff != "" {
		t.Errorf("owner (-want +got):\n%s", diff)
	}
	if object.GetLabels()["nfd.node.kubernetes.io/node-name"] != r.node {
		t.Errorf("labels %v", object.GetLabels())
	}
	// The API server drops fields that the schema does not have: nothing was dropped, so all are known.
	strict := object.DeepCopy()
	strict.SetName("strict-" + r.node)
	strict.SetResourceVersion("")
	strict.SetUID("")
	if _, err := objects.Resource(publish.NodeFeatures).Namespace("kube-system").Create(t.Context(), strict, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Error(err)
	}
	set, _, err := unstructured.NestedStringMap(object.Object, "spec", "labels")
	if err != nil || set["enflame.com/gcu.S60.count"] != "2" || set["enflame.com/gcu.model"] != "" {
		t.Errorf("%v, %v", set, err)
	}
	for range 5 {
		r.once()
	}
	if again := feature(t, r.node); again.GetResourceVersion() != object.GetResourceVersion() {
		t.Error("five looks in which nothing changed wrote the object")
	}
	r.faults("unplug 0", "unplug 1", "unplug 2", "unplug 3")
	r.start()
	until(t, "the object is gone", func(ctx context.Context) error {
		_, err := objects.Resource(publish.NodeFeatures).Namespace("kube-system").Get(ctx, object.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %v", err)
	})
}

// Case 39, the label half, on a real Node: all cards are away for a moment.
func TestCase39BlinkIsNotSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t, "t20x4", nil, publish.NameNodeLabels)
	r.start()
	r.ready()
	seen := r.watchNode()
	was := getNode(t, r.node)
	r.faults("driver none")
	until(t, "the driver is missed", func(context.Context) error {
		if r.d.Ready() == nil {
			return errors.New("ready")
		}
		return nil
	})
	r.faults()
	r.ready()
	if gone, events := seen.all(); len(gone) > 0 || events > 1 || getNode(t, r.node).ResourceVersion != was.ResourceVersion {
		t.Errorf("%d events, gone %v", events, gone)
	}
}

// A token of discovery labels its own node, and cannot do more.
func TestWhatItMayDo(t *testing.T) {
	t.Parallel()
	nfd(t)
	mine, other := newNode(t, nil), newNode(t, nil)
	config := as(t, mine)
	client := kubernetes.NewForConfigOrDie(config)
	patch := func(node, text string) error {
		_, err := client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	if err := patch(mine, `{"metadata":{"labels":{"enflame.com/gcu.model":"S60"}}}`); err != nil {
		t.Error(err)
	}
	features := func(node string) *publish.NodeFeature {
		return &publish.NodeFeature{Client: dynamic.NewForConfigOrDie(config), Nodes: client, Node: node, Namespace: "kube-system"}
	}
	set := labels.Result{Labels: labels.Set{"enflame.com/gcu.model": "S60"}}
	if _, err := features(mine).Publish(t.Context(), set); err != nil {
		t.Error(err)
	}
	// The policies take effect a moment after they were created.
	for what, do := range map[string]func() error{
		"labels of another node": func() error { return patch(other, `{"metadata":{"labels":{"enflame.com/gcu.model":"S60"}}}`) },
		"spec of its node":       func() error { return patch(mine, `{"spec":{"unschedulable":true}}`) },
		"a taint of its node":    func() error { return patch(mine, `{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`) },
		"a label of Kubernetes": func() error {
			return patch(mine, `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`)
		},
		"the features of another": func() error {
			_, err := features(other).Publish(t.Context(), set)
			if err == nil {
				_, err = features(other).Publish(t.Context(), labels.Result{})
			}
			return err
		},
		"a list of nodes": func() error {
			_, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			return err
		},
		"a list of pods": func() error {
			_, err := client.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{})
			return err
		},
	} {
		until(t, what+" is refused", func(context.Context) error {
			if err := do(); !apierrors.IsForbidden(err) {
				return fmt.Errorf("%v, want a refusal", err)
			}
			return nil
		})
	}
}
