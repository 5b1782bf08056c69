package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/topscloud/topscloud/internal/contract"
)

// plugin builds kubectl-gcu once for all tests.
var plugin = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "kubectl-gcu")
	build := exec.Command("go", "build", "-o", path, "github.com/topscloud/topscloud/scheduler/cmd/kubectl-gcu")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build kubectl-gcu: %w\n%s", err, out)
	}
	return path, nil
})

// cli runs the plugin as a user, in the test's namespace. The user's roles are those that as gave.
type cli struct {
	e          *env
	kubeconfig string
}

// cli binds a role to a user and returns the plugin run by that user.
func (e *env) cli(user, role string) *cli {
	e.t.Helper()
	e.as(user, role)
	config, err := cluster.ConfigFor(e.namespace + "-" + user)
	if err != nil {
		e.t.Fatal(err)
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	c.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	c.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: user, Namespace: e.namespace}
	c.CurrentContext = "c"
	path := filepath.Join(e.t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		e.t.Fatal(err)
	}
	return &cli{e, path}
}

// run returns what the plugin prints, to both outputs, and its exit code.
func (c *cli) run(args ...string) (out string, code int) {
	c.e.t.Helper()
	path, err := plugin()
	if err != nil {
		c.e.t.Fatal(err)
	}
	cmd := exec.CommandContext(c.e.t.Context(), path, append(args, "--kubeconfig", c.kubeconfig)...)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		c.e.t.Fatal(err)
	}
	c.e.t.Logf("kubectl gcu %s (exit code %d)\n%s", strings.Join(args, " "), code, b.String())
	return b.String(), code
}

// says checks exit code and parts of what is printed, whatever line it is broken to.
func (c *cli) says(code int, args []string, parts ...string) {
	c.e.t.Helper()
	out, got := c.run(args...)
	if got != code {
		c.e.t.Errorf("%v: exit code %d, want %d", args, got, code)
	}
	want(c.e.t, strings.Join(strings.Fields(out), " "), parts...)
}

// The mistakes that users of the guides make, asked about by a user who may see the cluster and by one
// who may see his namespace only.
func TestWhyAnswersTheUsualMistakes(t *testing.T) {
	e := newEnv(t, machine("n1", 16), machine("n2", 16))
	e.startScheduler(nil)
	viewer, tenant := e.cli("viewer", "gcu-viewer"), e.cli("tenant", "edit")
	e.create(
		pod("bytes", gcuMemory, "8Gi"),
		pod("nobodys", gcuMemory, "8", scheduledBy("gcu-schedular")),
		pod("label", gcuMemory, "8", selecting("enflame.com/gcu.modle", "S60")),
		pod("policy", gcuMemory, "8", annotated(names.PolicyKey, "bin-pack")),
		pod("holder", gcuMemory, "12", selecting("kubernetes.io/hostname", "n1")),
		pod("wishes", "", "", annotated(names.CardsKey, "2"), selecting("nowhere", "at-all")),
	)
	e.bound("holder")
	for _, name := range []string{"bytes", "label", "policy", "wishes"} {
		e.pending(name)
	}
	viewer.says(3, []string{"why", "bytes"}, "8Gi is 8589934592 units of 1 GiB; write 8", "The scheduler's words")
	viewer.says(3, []string{"why", "nobodys"}, "no scheduler of that name has looked at it", "did you mean gcu-scheduler?")
	viewer.says(3, []string{"why", "label"}, "No node has label enflame.com/gcu.modle", "did you mean enflame.com/gcu.model?", "S60 (2 nodes)")
	viewer.says(3, []string{"why", "policy"}, `enflame.com/gcu-policy "bin-pack": want binpack, spread`)
	viewer.says(3, []string{"why", "wishes"}, "The pod asks for GCU by annotation only (enflame.com/gcu-cards)", "give a container a limit")
	viewer.says(0, []string{"why", "holder"}, "Pod holder is on node n1", "12288 MiB of it", "Nothing is wrong with it.")
	viewer.says(1, []string{"why", "nosuch"}, `get pod/nosuch`, "not found")

	// Memory is short: the smallest changes, and one of them made.
	e.create(pod("big", gcuMemory, "16", selecting("kubernetes.io/hostname", "n1")))
	e.pending("big")
	viewer.says(3, []string{"why", "big"}, "largest free share on a card is 4 units, 16 asked", "ask for 4 instead of 16 of enflame.com/gcu-memory",
		"wait until pod "+e.namespace+"/holder (12288 MiB) on n1 has ended")
	tenant.says(3, []string{"why", "big"}, "Nodes cannot be judged with your rights", "no card with enough free GCU memory", "Nodes may not be read (list nodes)")
	e.delete("holder")
	e.bound("big")

	// CPU is short: cards have room, and nothing says that the pod fits.
	cpu := pod("cpu", gcuMemory, "8", selecting("kubernetes.io/hostname", "n2"))
	cpu.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("65")}
	e.create(cpu)
	e.pending("cpu")
	out, _ := viewer.run("why", "cpu")
	want(t, strings.Join(strings.Fields(out), " "), "not enough cpu: 65 asked, 64 of 64 left", "Cards are not what is missing")
	if strings.Contains(out, "fits") {
		t.Error("a pod that waits for CPU is said to fit")
	}
}

// Pods that were never made: the quota says no, and why names it for the Deployment.
func TestWhyOfADeploymentWithoutPods(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	tenant := e.cli("tenant", "edit")
	quota := &v1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "gcu"}, Spec: v1.ResourceQuotaSpec{Hard: v1.ResourceList{"requests." + gcuMemory: resource.MustParse("4")}}}
	if _, err := admin.CoreV1().ResourceQuotas(e.namespace).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.until("the quota is counted", func(ctx context.Context) bool {
		q, err := admin.CoreV1().ResourceQuotas(e.namespace).Get(ctx, "gcu", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0
	})
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: pod("x", gcuMemory, "8").Spec},
	}}
	if _, err := admin.AppsV1().Deployments(e.namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.until("its pods are refused", func(ctx context.Context) bool {
		sets, err := admin.AppsV1().ReplicaSets(e.namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(sets.Items) == 1 && len(sets.Items[0].Status.Conditions) > 0
	})
	tenant.says(3, []string{"why", "deploy/web"}, "deployment/web has no pod", "exceeded quota: gcu", "requests.enflame.com/gcu-memory=8", "have the quota raised")
}

// What fit promises is what the scheduler does; top adds it up.
func TestFitAndTop(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	e.startScheduler(nil)
	viewer, tenant := e.cli("viewer", "gcu-viewer"), e.cli("tenant", "edit")
	viewer.says(3, []string{"fit", "--memory", "6", "--replicas", "3"}, "2 of 3 replicas fit now", "ask for 4 instead of 6")
	for _, name := range []string{"a", "b"} {
		e.create(pod(name, gcuMemory, "6"))
		e.bound(name)
	}
	e.create(pod("c", gcuMemory, "6"))
	e.pending("c")
	viewer.says(0, []string{"fit", "--memory", "4"}, "It fits now")
	viewer.says(1, []string{"fit", "--memory", "5", "--cards", "2"}, "want a multiple of enflame.com/gcu-cards")
	tenant.says(1, []string{"fit", "--memory", "4"}, "what fits cannot be told with your rights", "list nodes")
	viewer.says(0, []string{"top"}, e.namespace+" 2 12288 0.75", "of 1 card with 16384 MiB")
	tenant.says(0, []string{"top", "--by", "pod"}, e.namespace+"/a n1 6144 0.00+?", "Not seen:")
}

// An operator closes a card and opens it again; a tenant may not.
func TestCordonByAnOperator(t *testing.T) {
	e := newEnv(t, machine("n1", 16))
	e.startScheduler(nil)
	operator, tenant := e.cli("operator", "gcu-operator"), e.cli("tenant", "edit")
	e.create(pod("a", gcuMemory, "4"))
	e.bound("a")
	tenant.says(1, []string{"cordon", "n1/0"}, "nodes", "forbidden")
	operator.says(0, []string{"cordon", "n1/0", "--reason", "fan", "--until", "2h"}, "card 0 of n1 cordoned", "Still on it, and staying:", e.namespace+"/a, 4096 MiB")
	e.create(pod("b", gcuMemory, "4"))
	want(t, e.pending("b"), "1 GCU cards cordoned")
	operator.says(3, []string{"why", "b"}, "open cordoned cards: kubectl gcu uncordon n1/0")
	operator.says(1, []string{"cordon", "n1/1"}, "node n1 has no card 1; it has 0")
	operator.says(1, []string{"cordon", "n9/1"}, "there is no node n9")
	operator.says(0, []string{"uncordon", "n1/0"}, "card 0 of n1 uncordoned")
	e.bound("b")
	if _, err := admin.CoreV1().Nodes().Patch(t.Context(), "n1", types.MergePatchType, []byte(`{"metadata":{"annotations":{"enflame.com/gcu-cordon":"{"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	operator.says(1, []string{"uncordon", "n1/0"}, "cannot be read, so nothing was changed", "kubectl annotate node n1 enflame.com/gcu-cordon-")
}

// Case 10 ends "repaired": an administrator corrects the record, the node opens, an event is left. A
// tenant is told who can.
func TestCase10Repaired(t *testing.T) {
	e := newEnv(t, machine("n1", 16, 16))
	r := e.startScheduler(nil)
	gcuAdmin, tenant := e.cli("admin", "gcu-admin"), e.cli("tenant", "edit")
	e.create(pod("p", gcuMemory, "12"))
	good := e.bound("p").Annotations[names.AllocationKey]
	broken := strings.Replace(good, `"minor":0`, `"minor":"0,"`, 1)
	if broken == good {
		t.Fatalf("no minor in %s", good)
	}
	e.annotate("p", names.AllocationKey, broken)
	e.until("n1 is closed", func(context.Context) bool { return len(r.ledger.Node("n1").Problems) > 0 })
	e.create(pod("q", gcuMemory, "12"))
	e.pending("q")
	gcuAdmin.says(3, []string{"why", "q"}, "Node n1 takes no new GCU pod because of pod "+e.namespace+"/p", "kubectl gcu repair p -n "+e.namespace)

	tenant.says(1, []string{"repair", "p", "--yes"}, "you may not write GCU records in namespace "+e.namespace, "ClusterRole gcu-admin")
	gcuAdmin.says(1, []string{"repair", "p"}, "not confirmed, so nothing was written")
	gcuAdmin.says(0, []string{"repair", "p", "--dry-run"}, "Nothing was written (--dry-run)")
	if e.get("p").Annotations[names.AllocationKey] != broken {
		t.Fatal("the record was written without a word of it")
	}
	gcuAdmin.says(0, []string{"repair", "p", "--yes"}, "container main on card 0 12288 MiB", "Written.")
	if got := e.get("p").Annotations[names.AllocationKey]; got != good {
		t.Errorf("record %s, want %s", got, good)
	}
	e.bound("q")
	gcuAdmin.says(0, []string{"repair", "p"}, "nothing to repair")
	e.event("p", "GCURecordRepaired", "main on card 0 12288 MiB")

	// Cut off: nothing can be read, so the administrator says it, or takes the record away.
	e.annotate("p", names.AllocationKey, good[:40])
	e.until("n1 is closed", func(context.Context) bool { return len(r.ledger.Node("n1").Problems) > 0 })
	gcuAdmin.says(1, []string{"repair", "p", "--yes", "--set", "main=1"}, "card 1 of n1 would be promised twice", e.namespace+"/q has 12288 MiB")
	gcuAdmin.says(0, []string{"repair", "p", "--yes", "--clear"}, "no record. The pod counts as unrecorded", "Written.")
	e.event("p", "GCURecordCleared", "counts as unrecorded")
	if _, there := e.get("p").Annotations[names.AllocationKey]; there {
		t.Error("the record is still there")
	}
	gcuAdmin.says(0, []string{"repair", "p", "--yes", "--set", "main=0"}, "Written.")
	if a, err := contract.DecodeAllocation(e.get("p").Annotations[names.AllocationKey]); err != nil || a.Containers[0].Cards[0].Minor != 0 {
		t.Errorf("%+v, %v", a, err)
	}
}

// event waits for an event on a pod.
func (e *env) event(name, reason, note string) {
	e.t.Helper()
	e.until("an event "+reason+" is on "+name, func(ctx context.Context) bool {
		list, err := admin.EventsV1().Events(e.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false
		}
		for _, ev := range list.Items {
			if ev.Reason == reason && ev.Regarding.Name == name && strings.Contains(ev.Note, note) {
				return true
			}
		}
		return false
	})
}
