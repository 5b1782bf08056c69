package scheduler_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/topscloud/topscloud/gcushare/ledger"
	"github.com/topscloud/topscloud/manifests"
	"github.com/topscloud/topscloud/sandbox/simnode"
	"github.com/topscloud/topscloud/scheduler/gcufit"
	"github.com/topscloud/topscloud/scheduler/lease"
)

// patience bounds every wait; nothing here takes a tenth of it on an idle machine.
const patience = 60 * time.Second

// env is one test's part of the cluster.
type env struct {
	t         *testing.T
	namespace string
	nodes     *simnode.Manager
	names     []string
}

// newEnv makes a namespace and simulated nodes, and takes both away at the end.
func newEnv(t *testing.T, machines ...simnode.Machine) *env {
	t.Helper()
	e := &env{t: t, namespace: "t-" + rand.String(6)}
	ctx := t.Context()
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}
	if _, err := admin.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.until("the default service account is there", func(ctx context.Context) bool {
		_, err := admin.CoreV1().ServiceAccounts(e.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err == nil
	})
	ctx, stop := context.WithCancel(context.Background())
	config, err := cluster.ConfigFor("gcu-sandbox-nodes")
	if err != nil {
		t.Fatal(err)
	}
	e.nodes = simnode.NewManager(kubernetes.NewForConfigOrDie(config), simnode.Options{})
	done := make(chan struct{})
	go func() { e.nodes.Run(ctx); close(done) }()
	t.Cleanup(func() {
		e.clean()
		stop()
		<-done
	})
	for _, m := range machines {
		if err := e.nodes.Add(ctx, m); err != nil {
			t.Fatal(err)
		}
		e.names = append(e.names, m.Name)
	}
	e.until("the nodes are ready and untainted", func(ctx context.Context) bool {
		for _, name := range e.names {
			n, err := admin.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err != nil || len(n.Spec.Taints) > 0 {
				return false
			}
		}
		return true
	})
	return e
}

// clean deletes the pods, lets the simulated kubelets finish them, and deletes nodes and namespace.
func (e *env) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	zero := int64(0)
	pods := admin.CoreV1().Pods(e.namespace)
	_ = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{}); err != nil {
			return false, nil
		}
		list, err := pods.List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == 0, nil
	})
	for _, name := range e.names {
		if err := admin.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			e.t.Error(err)
		}
	}
	if err := admin.CoreV1().Namespaces().Delete(ctx, e.namespace, metav1.DeleteOptions{}); err != nil {
		e.t.Error(err)
	}
}

// until waits for a condition that the cluster reaches by itself.
func (e *env) until(what string, ok func(context.Context) bool) {
	e.t.Helper()
	err := wait.PollUntilContextTimeout(e.t.Context(), 20*time.Millisecond, patience, true,
		func(ctx context.Context) (bool, error) { return ok(ctx), nil })
	if err != nil {
		e.t.Fatalf("waiting until %s: %v", what, err)
	}
}

// running is a scheduler of ours inside this process.
type running struct {
	ledger *ledger.Ledger
	// lead starts scheduling, as gaining the lease does; stop ends the process.
	lead, stop func()
}

// startScheduler runs a scheduler that leads at once. wrap, which may be nil, stands between it and
// the API server.
func (e *env) startScheduler(wrap func(http.RoundTripper) http.RoundTripper) *running {
	e.t.Helper()
	r := e.startStandby(wrap)
	r.lead()
	return r
}

// startStandby runs the shipped configuration with the shipped rights up to the point where a real
// one waits for the lease: its informers run, it schedules nothing.
func (e *env) startStandby(wrap func(http.RoundTripper) http.RoundTripper) *running {
	e.t.Helper()
	return e.startHolding(nil, wrap)
}

// startHolding is startStandby for a scheduler that goes by a lease; without one it is never refused.
func (e *env) startHolding(hold *lease.Hold, wrap func(http.RoundTripper) http.RoundTripper) *running {
	e.t.Helper()
	file := filepath.Join(e.t.TempDir(), "config.yaml")
	text, ok := manifests.SchedulerConfig()
	if !ok {
		e.t.Fatal("the scheduler's configuration does not ship")
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		e.t.Fatal(err)
	}
	loaded, err := options.LoadConfigFromFile(klog.Background(), file)
	if err != nil {
		e.t.Fatal(err)
	}
	config, err := cluster.ConfigForServiceAccount("kube-system", "gcu-scheduler")
	if err != nil {
		e.t.Fatal(err)
	}
	config.QPS, config.Burst = 1000, 2000
	if wrap != nil {
		config.Wrap(wrap)
	}
	client := kubernetes.NewForConfigOrDie(config)
	ctx, cancel := context.WithCancel(context.Background())
	factory := &gcufit.Factory{Lease: hold}
	informers := scheduler.NewInformerFactory(client, 0, nil)
	dyn := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		e.t.Fatal(err)
	}
	s, err := scheduler.New(ctx, client, informers, dyn, profile.NewRecorderFactory(broadcaster),
		scheduler.WithKubeConfig(config), scheduler.WithProfiles(loaded.Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{gcufit.Name: factory.New}),
		// Whatever wakes a pod in these tests, it is not the periodic flush.
		scheduler.WithPodMaxInUnschedulablePodsDuration(time.Hour),
	)
	if err != nil {
		cancel()
		e.t.Fatal(err)
	}
	informers.Start(ctx.Done())
	dyn.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := s.WaitForHandlersSync(ctx); err != nil {
		cancel()
		e.t.Fatal(err)
	}
	var leading sync.WaitGroup
	r := &running{ledger: factory.Ledger(), lead: func() { leading.Go(func() { s.Run(ctx) }) }}
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		leading.Wait()
		broadcaster.Shutdown()
		informers.Shutdown()
		if err := r.ledger.Check(); err != nil {
			e.t.Errorf("ledger: %v", err)
		}
	}
	e.t.Cleanup(r.stop)
	return r
}

// get reads a pod of the test's namespace.
func (e *env) get(name string) *v1.Pod {
	e.t.Helper()
	pod, err := admin.CoreV1().Pods(e.namespace).Get(e.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	return pod
}

// bound waits until a pod is bound and returns it.
func (e *env) bound(name string) *v1.Pod {
	e.t.Helper()
	var pod *v1.Pod
	e.until(name+" is bound", func(ctx context.Context) bool {
		p, err := admin.CoreV1().Pods(e.namespace).Get(ctx, name, metav1.GetOptions{})
		pod = p
		return err == nil && p.Spec.NodeName != ""
	})
	return pod
}

// pending waits until the scheduler said that a pod cannot be placed, and returns what it said.
func (e *env) pending(name string) string {
	e.t.Helper()
	message := ""
	e.until(name+" is turned away", func(ctx context.Context) bool {
		p, err := admin.CoreV1().Pods(e.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		if p.Spec.NodeName != "" {
			e.t.Fatalf("%s was bound to %s, want pending", name, p.Spec.NodeName)
		}
		message = scheduled(p)
		return message != ""
	})
	return message
}

// scheduled returns the message of a pod's PodScheduled=False condition.
func scheduled(p *v1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && c.Reason == v1.PodReasonUnschedulable {
			return c.Message
		}
	}
	return ""
}

func (e *env) create(pods ...*v1.Pod) {
	e.t.Helper()
	for _, pod := range pods {
		if _, err := admin.CoreV1().Pods(e.namespace).Create(e.t.Context(), pod, metav1.CreateOptions{}); err != nil {
			e.t.Fatal(err)
		}
	}
}

func (e *env) delete(name string) {
	e.t.Helper()
	if err := admin.CoreV1().Pods(e.namespace).Delete(e.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		e.t.Fatal(err)
	}
}

func want(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("message %q does not say %q", text, part)
		}
	}
}
