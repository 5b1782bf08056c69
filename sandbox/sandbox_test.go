package sandbox_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/sandbox/apply"
	"github.com/topscloud/topscloud/sandbox/simnode"
)

// testLog sends progress lines to the test's log.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// buildTool builds a command of this module, which go's cache makes quick.
func buildTool(t *testing.T, pkg string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-o", out, "github.com/topscloud/topscloud/"+pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, b)
	}
	return out
}

func machines(t *testing.T, values ...string) []simnode.Machine {
	t.Helper()
	m, err := simnode.ParseMachines(values)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func eventually(t *testing.T, what string, check func(context.Context) (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 90*time.Second, true, check)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func pod(name, scheduler string, limits corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler,
			Containers: []corev1.Container{{
				Name: "main", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Limits: limits},
			}},
		},
	}
}

func phaseIs(client kubernetes.Interface, name string, want corev1.PodPhase) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		p, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		return err == nil && p.Status.Phase == want, err
	}
}

// TestWholeCluster starts every part once and looks at what the parts do together. The cases run in
// order, since they share one cluster.
func TestWholeCluster(t *testing.T) {
	scheduler := buildTool(t, "scheduler/cmd/gcu-scheduler")
	start := time.Now()
	sb, err := sandbox.Start(t.Context(), sandbox.Options{
		DataDir: t.TempDir(), ControllerManager: true, StockScheduler: true, GCUScheduler: scheduler,
		Machines:               machines(t, "s60x8", "t10x8"),
		NodeMonitorGracePeriod: 12 * time.Second,
		Log:                    testLog{t},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Stop()
	t.Logf("up in %s", time.Since(start))
	client, err := kubernetes.NewForConfig(sb.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		run  func(*testing.T, *sandbox.Sandbox, kubernetes.Interface)
	}{
		{"both schedulers place pods", bothSchedulersPlace},
		{"a pod completes when its time is over", podCompletes},
		{"a deleted pod goes", deletedPodGoes},
		{"DaemonSet pods run on every node", daemonSetRuns},
		{"quota limits GCU requests", quotaLimits},
		{"the scheduler has every right it uses", schedulerRights},
		{"identities have only their own rights", identities},
		{"a failed card shows", failedCardShows},
		{"a silent node is noticed and comes back", silentNode},
		{"components can be restarted", restarts},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, sb, client) })
	}
}

func create(t *testing.T, client kubernetes.Interface, p *corev1.Pod) {
	t.Helper()
	if _, err := client.CoreV1().Pods(p.Namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func bothSchedulersPlace(t *testing.T, _ *sandbox.Sandbox, client kubernetes.Interface) {
	for _, scheduler := range []string{"default-scheduler", "gcu-scheduler"} {
		create(t, client, pod("by-"+scheduler, scheduler, nil))
	}
	for _, scheduler := range []string{"default-scheduler", "gcu-scheduler"} {
		eventually(t, scheduler+" runs a pod", phaseIs(client, "by-"+scheduler, corev1.PodRunning))
	}
}

func podCompletes(t *testing.T, _ *sandbox.Sandbox, client kubernetes.Interface) {
	p := pod("short", "default-scheduler", nil)
	p.Annotations = map[string]string{simnode.RunForAnnotation: "1s"}
	p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "registry.k8s.io/pause:3.10"}}
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	create(t, client, p)
	eventually(t, "the pod succeeds", phaseIs(client, "short", corev1.PodSucceeded))
}

func deletedPodGoes(t *testing.T, _ *sandbox.Sandbox, client kubernetes.Interface) {
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "by-default-scheduler", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod goes", func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Pods("default").Get(ctx, "by-default-scheduler", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

func daemonSetRuns(t *testing.T, sb *sandbox.Sandbox, client kubernetes.Interface) {
	applier, err := apply.New(sb.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, err = applier.Apply(t.Context(), []byte(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      nodeSelector: {enflame.com/gcu.present: "true"}
      containers: [{name: main, image: registry.k8s.io/pause:3.10}]
`))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the DaemonSet is ready", func(ctx context.Context) (bool, error) {
		ds, err := client.AppsV1().DaemonSets("default").Get(ctx, "agent", metav1.GetOptions{})
		return err == nil && ds.Status.NumberReady == 2, err
	})
}

func quotaLimits(t *testing.T, sb *sandbox.Sandbox, client kubernetes.Interface) {
	applier, err := apply.New(sb.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	_, err = applier.Apply(t.Context(), []byte(`
apiVersion: v1
kind: ResourceQuota
metadata: {name: gcu}
spec: {hard: {requests.enflame.com/gcu: "1"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = client.CoreV1().ResourceQuotas("default").Delete(context.Background(), "gcu", metav1.DeleteOptions{})
	}()
	eventually(t, "the quota is counted", func(ctx context.Context) (bool, error) {
		q, err := client.CoreV1().ResourceQuotas("default").Get(ctx, "gcu", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0, err
	})
	two := pod("two-cards", "none", corev1.ResourceList{"enflame.com/gcu": resource.MustParse("2")})
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), two, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("two cards under a quota of one: got %v, want forbidden", err)
	}
}

// schedulerRights looks for refusals in the scheduler's log: it lists and watches on its own, and a
// right that is missing shows nowhere else.
func schedulerRights(t *testing.T, sb *sandbox.Sandbox, _ kubernetes.Interface) {
	b, err := os.ReadFile(sb.Layout().LogFile(sandbox.GCUScheduler))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "forbidden") {
			t.Error(line)
		}
	}
}

func identities(t *testing.T, sb *sandbox.Sandbox, _ kubernetes.Interface) {
	config, err := sb.ConfigFor("someone", "tenants")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without roles lists nodes: got %v, want forbidden", err)
	}
	if config, err = sb.ConfigForServiceAccount("kube-system", "gcu-scheduler"); err != nil {
		t.Fatal(err)
	}
	if client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the scheduler lists nodes: %v", err)
	}
	if _, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the scheduler lists secrets: got %v, want forbidden", err)
	}
}

func failedCardShows(t *testing.T, sb *sandbox.Sandbox, client kubernetes.Interface) {
	if err := sb.Nodes().SetFault(t.Context(), "s60x8-0", "card-fail=3"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the annotation and allocatable change", func(ctx context.Context) (bool, error) {
		n, err := client.CoreV1().Nodes().Get(ctx, "s60x8-0", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		d, err := contract.DecodeDevices(n.Annotations[contract.Default().DevicesKey])
		if err != nil {
			return false, err
		}
		whole := n.Status.Allocatable["enflame.com/gcu"]
		return d.Devices[3].Health != "" && whole.Value() == 7, nil
	})
	if err := sb.Nodes().SetFault(t.Context(), "s60x8-0", ""); err != nil {
		t.Fatal(err)
	}
}

func silentNode(t *testing.T, sb *sandbox.Sandbox, client kubernetes.Interface) {
	ready := func(want corev1.ConditionStatus) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			n, err := client.CoreV1().Nodes().Get(ctx, "t10x8-0", metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			for _, c := range n.Status.Conditions {
				if c.Type == corev1.NodeReady {
					return c.Status == want, nil
				}
			}
			return false, nil
		}
	}
	if err := sb.Nodes().SetFault(t.Context(), "t10x8-0", "stop"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node becomes unknown", ready(corev1.ConditionUnknown))
	if err := sb.Nodes().SetFault(t.Context(), "t10x8-0", "restart"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node becomes ready", ready(corev1.ConditionTrue))
}

func restarts(t *testing.T, sb *sandbox.Sandbox, client kubernetes.Interface) {
	for _, name := range []string{sandbox.APIServer, sandbox.Etcd} {
		if err := sb.Restart(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the API answers", func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Pods("default").Get(ctx, "by-gcu-scheduler", metav1.GetOptions{})
		return err == nil, nil
	})
	create(t, client, pod("after-restart", "gcu-scheduler", nil))
	eventually(t, "a pod runs", phaseIs(client, "after-restart", corev1.PodRunning))
}

// TestOnlyTheAPI starts what a test with a scheduler of its own needs, and a pod that names its node.
func TestOnlyTheAPI(t *testing.T) {
	dir := t.TempDir()
	options := sandbox.Options{DataDir: dir, Machines: machines(t, "t20x4"), Log: testLog{t}}
	sb, err := sandbox.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { sb.Stop() }()
	if _, err := sandbox.Start(t.Context(), options); err == nil {
		t.Error("a second sandbox started on the same data folder")
	}
	client, err := kubernetes.NewForConfig(sb.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	p := pod("bound", "none", nil)
	p.Spec.NodeName = "t20x4-0"
	create(t, client, p)
	eventually(t, "the pod runs", phaseIs(client, "bound", corev1.PodRunning))

	big := pod("big", "none", corev1.ResourceList{"enflame.com/gcu": resource.MustParse("5")})
	big.Spec.NodeName = "t20x4-0"
	create(t, client, big)
	eventually(t, "kubelet refuses what does not fit", phaseIs(client, "big", corev1.PodFailed))

	url := sb.URL()
	sb.Stop()
	if sb, err = sandbox.Start(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if sb.URL() != url {
		t.Errorf("resumed at %s: want %s again", sb.URL(), url)
	}
	if client, err = kubernetes.NewForConfig(sb.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is still there", phaseIs(client, "bound", corev1.PodRunning))
}
