package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/manifests"
	"github.com/topscloud/topscloud/sandbox"
	"github.com/topscloud/topscloud/sandbox/binaries"
	"github.com/topscloud/topscloud/sandbox/simnode"
)

// EnvPanels names a folder; what each panel shows is written there, for make panels to draw.
const EnvPanels = "TOPSCLOUD_PANELS"

// patience bounds the wait for data; all of it is there within seconds.
const patience = 90 * time.Second

// span is the time that panels show.
const span = 2 * time.Minute

// TestDashboards runs a cluster in which everything that dashboards show is there: two kinds of cards, pods with whole
// cards and shares, one that waits, a broken card and a node that is closed. Each query of each dashboard and each
// recording rule has to have data in a Prometheus that scrapes it, and each title to be there in both languages.
func TestDashboards(t *testing.T) {
	klog.SetLogger(logr.Discard())
	dir := t.TempDir()
	scheduler := filepath.Join(dir, sandbox.GCUScheduler)
	if out, err := exec.Command("go", "build", "-o", scheduler, "../../scheduler/cmd/gcu-scheduler").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	machines, err := simnode.ParseMachines([]string{"t20x4:2", "s60x8"})
	if err != nil {
		t.Fatal(err)
	}
	sb, err := sandbox.Start(t.Context(), sandbox.Options{
		DataDir: filepath.Join(dir, "sandbox"), ControllerManager: true, GCUScheduler: scheduler,
		Machines: machines, Agents: true, Exporters: true, Log: os.Stderr,
		Prometheus: filepath.Join(prometheus(t), binaries.Prometheus),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Stop()
	client, err := kubernetes.NewForConfig(sb.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := sandbox.Status(sb.Layout().Dir)
	if err != nil {
		t.Fatal(err)
	}
	var a api
	for _, r := range rows {
		if r.Component == sandbox.Prometheus {
			a.address = r.URL
		}
	}
	work(t, client, sb, a)

	boards := map[string]*board{}
	texts, err := manifests.Dashboards()
	if err != nil || len(texts) == 0 {
		t.Fatalf("%d dashboards, %v", len(texts), err)
	}
	for name, text := range texts {
		b := &board{}
		if err := json.Unmarshal(text, b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		boards[name] = b
	}
	// The node whose cards are joined to each other, and the namespace of the pods.
	choose := map[string]string{"host": "t20x4-0", "namespace": "default"}
	var shown []picture
	for _, name := range slices.Sorted(maps.Keys(boards)) {
		b := boards[name]
		until(t, name+" has data in each panel", func(ctx context.Context) error {
			values, err := b.values(ctx, a, "0", choose)
			if err != nil {
				return err
			}
			list, err := b.pictures(ctx, a, values, span)
			if err == nil {
				shown = append(shown, list...)
			}
			return err
		})
		chinese, err := b.values(t.Context(), a, "1", choose)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Panels {
			if title := fill(p.Title, chinese); !strings.ContainsFunc(title, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
				t.Errorf("%s: with Chinese chosen a title is %q", name, title)
			}
		}
	}
	var rules groups
	load(t, "gcu-rules.yaml", &rules)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if r.Record != "" {
				until(t, r.Record+" is recorded", func(ctx context.Context) error {
					_, err := some(a.now(ctx, r.Record))
					return err
				})
			}
		}
	}
	until(t, "the alerts say what is wrong here, pending or firing", func(ctx context.Context) error {
		for _, alert := range []string{"GCUCardUnhealthy", "GCUNodeClosed", "GCUPodPending"} {
			if _, err := some(a.now(ctx, `ALERTS{alertname="`+alert+`"}`)); err != nil {
				return err
			}
		}
		return nil
	})
	// What is well raises no alert: that the metrics which alerts go by are there is known from the panels.
	others, err := a.now(t.Context(), `ALERTS{alertname!~"GCUCardUnhealthy|GCUNodeClosed|GCUPodPending"}`)
	if err != nil || len(others) > 0 {
		t.Errorf("alerts about what is well: %v, %v", others, err)
	}
	if folder := os.Getenv(EnvPanels); folder != "" {
		text, err := json.Marshal(shown)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "panels.json"), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// work makes pods and faults.
func work(t *testing.T, client kubernetes.Interface, sb *sandbox.Sandbox, a api) {
	t.Helper()
	for _, p := range []struct {
		name, resource string
		amount         int64
		node           string
	}{
		{"whole", "enflame.com/gcu", 1, "t20x4-0"},
		{"share", "enflame.com/gcu-memory", 8, "t20x4-0"},
		{"slices", "enflame.com/shared-gcu", 2, "s60x8-0"},
		{"too-large", "enflame.com/gcu", 16, ""},
	} {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.name}, Spec: v1.PodSpec{
			SchedulerName: contract.SchedulerName,
			Containers: []v1.Container{{Name: "main", Image: "none", Resources: v1.ResourceRequirements{
				Limits: v1.ResourceList{v1.ResourceName(p.resource): *resource.NewQuantity(p.amount, resource.DecimalSI)},
			}}},
		}}
		if p.node != "" {
			pod.Spec.NodeSelector = map[string]string{v1.LabelHostname: p.node}
		}
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if p.node == "" {
			continue
		}
		until(t, "pod "+p.name+" runs", func(ctx context.Context) error {
			now, err := client.CoreV1().Pods("default").Get(ctx, p.name, metav1.GetOptions{})
			if err == nil && now.Status.Phase != v1.PodRunning {
				err = fmt.Errorf("phase %s", now.Status.Phase)
			}
			return err
		})
		// A rate needs a value from before: the counter begins with the first pod.
		until(t, "Prometheus knows of a pod that was placed", func(ctx context.Context) error {
			_, err := some(a.now(ctx, `scheduler_scheduling_attempt_duration_seconds_count{result="scheduled"}`))
			return err
		})
	}
	if err := sb.Nodes().SetFault(t.Context(), "s60x8-0", "card-fail=3"); err != nil {
		t.Fatal(err)
	}
	// A cordon that nobody can read closes its node.
	patch := `{"metadata":{"annotations":{"` + contract.Default().CordonKey + `":"{"}}}`
	if _, err := client.CoreV1().Nodes().Patch(t.Context(), "t20x4-1", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func until(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 500*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, last)
	}
}
