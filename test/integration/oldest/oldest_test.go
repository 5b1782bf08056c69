// Package oldest_test runs gcu-scheduler, which is linked with the current Kubernetes, against the
// oldest control plane in docs/support.md.
package oldest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/sandbox/binaries"
	"github.com/topscloud/topscloud/sandbox/simnode"
)

// The scheduler becomes ready, places a share and a pair of cards, writes their records with the
// Binding, says why a pod waits, and asks for no right it does not have.
func TestSchedulerOnTheOldestControlPlane(t *testing.T) {
	ctx := t.Context()
	set, err := binaries.EnsureOldest(ctx, binaries.Options{Log: logger{t}})
	if err != nil {
		t.Fatal(err)
	}
	scheduler := filepath.Join(t.TempDir(), "gcu-scheduler")
	build := exec.CommandContext(ctx, "go", "build", "-o", scheduler, "github.com/topscloud/topscloud/scheduler/cmd/gcu-scheduler")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	machines, err := simnode.ParseMachines([]string{"s60x8"})
	if err != nil {
		t.Fatal(err)
	}
	minor := strings.Join(strings.Split(strings.TrimPrefix(binaries.OldestKubernetesVersion, "v"), ".")[:2], ".")
	s, err := sandbox.Start(ctx, sandbox.Options{
		DataDir: t.TempDir(), Binaries: set, ControllerManager: true, GCUScheduler: scheduler,
		GCUSchedulerArgs: []string{"--emulated-version=" + minor}, Machines: machines, Log: logger{t},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	schedulerLog := s.Layout().LogFile(sandbox.GCUScheduler)
	defer func() {
		if t.Failed() {
			log, err := os.ReadFile(schedulerLog)
			t.Logf("the scheduler's log (error %v):\n%s", err, log)
		}
	}()
	client := kubernetes.NewForConfigOrDie(s.RESTConfig())
	server, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if server.GitVersion != binaries.OldestKubernetesVersion {
		t.Fatalf("the API server is %s, want %s", server.GitVersion, binaries.OldestKubernetesVersion)
	}
	pods := client.CoreV1().Pods("default")
	for name, ask := range map[string][2]string{"share": {"enflame.com/gcu-memory", "8"}, "pair": {"enflame.com/gcu", "2"}, "never": {"enflame.com/gcu", "9"}} {
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1.PodSpec{SchedulerName: contract.SchedulerName, Containers: []v1.Container{{
				Name: "main", Image: "registry.k8s.io/pause:3.10",
				Resources: v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceName(ask[0]): resource.MustParse(ask[1])}},
			}}},
		}
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	names := contract.Default()
	for name, cards := range map[string]int{"share": 1, "pair": 2} {
		pod := until(t, pods.Get, name, func(p *v1.Pod) bool { return p.Status.Phase == v1.PodRunning })
		record, err := contract.DecodeAllocation(pod.Annotations[names.AllocationKey])
		if err != nil || len(record.Containers[0].Cards) != cards {
			t.Errorf("%s: record %v, error %v, want %d cards", name, record, err, cards)
		}
	}
	never := until(t, pods.Get, "never", func(p *v1.Pod) bool {
		c := scheduled(p)
		return c != nil && c.Reason == v1.PodReasonUnschedulable
	})
	if got := scheduled(never).Message; !strings.Contains(got, "fewer than 9 GCU cards on the node") {
		t.Errorf("never waits with %q", got)
	}
	log, err := os.ReadFile(schedulerLog)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "forbidden") || strings.Contains(line, "could not find the requested resource") {
			t.Errorf("scheduler: %s", line)
		}
	}
}

// scheduled returns a pod's condition PodScheduled. It need not be the first: a pod that was there before the
// scheduler led carries BindingSettled as well.
func scheduled(p *v1.Pod) *v1.PodCondition {
	i := slices.IndexFunc(p.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled })
	if i < 0 {
		return nil
	}
	return &p.Status.Conditions[i]
}

func until(t *testing.T, get func(context.Context, string, metav1.GetOptions) (*v1.Pod, error), name string, ok func(*v1.Pod) bool) *v1.Pod {
	t.Helper()
	pod := &v1.Pod{}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		p, err := get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, nil // the deadline tells what was seen last
		}
		pod = p
		return ok(p), nil
	})
	if err != nil {
		t.Fatalf("%s: %v; last seen %+v", name, err, pod.Status)
	}
	return pod
}

type logger struct{ t *testing.T }

func (l logger) Write(b []byte) (int, error) {
	l.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}
