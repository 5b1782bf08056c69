package sandbox_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/sandbox/simnode"
)

// testLog sends progress lines to the test's log.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) { l.t.Log(string(b)); return len(b), nil }

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

// TestWholeClusterRunsPods starts every part and lets both schedulers place a pod.
func TestWholeClusterRunsPods(t *testing.T) {
	start := time.Now()
	sb, err := sandbox.Start(t.Context(), sandbox.Options{
		DataDir: t.TempDir(), ControllerManager: true, StockScheduler: true,
		GCUScheduler: buildTool(t, "scheduler/cmd/gcu-scheduler"),
		Machines:     machines(t, "s60x8", "t10x8"),
		Log:          testLog{t},
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
	for _, scheduler := range []string{"default-scheduler", "gcu-scheduler"} {
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod("by-"+scheduler, scheduler, nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, scheduler := range []string{"default-scheduler", "gcu-scheduler"} {
		eventually(t, scheduler+" runs a pod", phaseIs(client, "by-"+scheduler, corev1.PodRunning))
	}
	t.Logf("pods run after %s", time.Since(start))
}
