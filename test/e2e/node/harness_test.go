package node_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/sandbox/realnode"
	"github.com/topscloud/topscloud/sandbox/realnode/report"
)

// patience bounds every wait.
const patience = 90 * time.Second

const (
	memory = "enflame.com/gcu-memory"
	slice  = "enflame.com/shared-gcu"
	whole  = "enflame.com/gcu"
)

var names = contract.Default()

// env is one test's part of the cluster.
type env struct {
	t         *testing.T
	namespace string
}

func newEnv(t *testing.T) *env {
	t.Helper()
	realnode.Require(t)
	if testing.Short() {
		t.Skip("needs a real node, which takes longer than -short allows")
	}
	e := &env{t: t, namespace: "t-" + rand.String(6)}
	ns := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}
	if _, err := admin.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.until("the default service account is there", func(ctx context.Context) error {
		_, err := admin.CoreV1().ServiceAccounts(e.namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	t.Cleanup(e.clean)
	return e
}

// clean deletes the test's pods, waits until kubelet has finished them, and deletes the namespace.
func (e *env) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if e.t.Failed() {
		e.tell(ctx)
	}
	if err := e.deleteAll(ctx); err != nil {
		e.t.Errorf("pods are left: %v", err)
	}
	if err := admin.CoreV1().Namespaces().Delete(ctx, e.namespace, metav1.DeleteOptions{}); err != nil {
		e.t.Error(err)
	}
}

func (e *env) deleteAll(ctx context.Context) error {
	pods := admin.CoreV1().Pods(e.namespace)
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d pods, %s among them", len(list.Items), list.Items[0].Name)
		}
		return err
	})
}

// tell prints what the cluster says of the test's pods.
func (e *env) tell(ctx context.Context) {
	for _, args := range [][]string{{"get", "pods", "-o", "wide"}, {"get", "events", "--sort-by=.lastTimestamp"}} {
		out, _ := exec.CommandContext(ctx, kubectl, append([]string{"--kubeconfig", cluster.Kubeconfig(), "-n", e.namespace}, args...)...).CombinedOutput()
		e.t.Logf("kubectl %s:\n%s", strings.Join(args, " "), out)
	}
}

func poll(ctx context.Context, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 25*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}

// until waits for something that the cluster does by itself.
func (e *env) until(what string, check func(context.Context) error) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), patience)
	defer cancel()
	if err := poll(ctx, check); err != nil {
		e.t.Fatalf("waiting until %s: %v", what, err)
	}
}

func (e *env) create(pods ...*v1.Pod) {
	e.t.Helper()
	for _, p := range pods {
		if _, err := admin.CoreV1().Pods(e.namespace).Create(e.t.Context(), p, metav1.CreateOptions{}); err != nil {
			e.t.Fatal(err)
		}
	}
}

func (e *env) get(name string) *v1.Pod {
	e.t.Helper()
	p, err := admin.CoreV1().Pods(e.namespace).Get(e.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	return p
}

// running waits until a pod has the phase Running with all its containers started, and returns it.
func (e *env) running(name string) *v1.Pod {
	e.t.Helper()
	var p *v1.Pod
	e.until(name+" runs", func(ctx context.Context) error {
		var err error
		if p, err = admin.CoreV1().Pods(e.namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return runs(p)
	})
	return p
}

func runs(p *v1.Pod) error {
	if p.Status.Phase != v1.PodRunning {
		return fmt.Errorf("pod %s: phase %s, %s %s", p.Name, p.Status.Phase, p.Status.Reason, p.Status.Message)
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running == nil {
			return fmt.Errorf("container %s: %v", c.Name, c.State)
		}
	}
	return nil
}

// log returns what a container wrote, from its current life or the one before.
func (e *env) log(pod, container string, previous bool) string {
	e.t.Helper()
	text, err := admin.CoreV1().Pods(e.namespace).GetLogs(pod, &v1.PodLogOptions{Container: container, Previous: previous}).DoRaw(e.t.Context())
	if err != nil {
		e.t.Fatalf("log of %s, %s: %v", pod, container, err)
	}
	return string(text)
}

// sees returns what a container reported when it started.
func (e *env) sees(pod, container string) report.Report {
	e.t.Helper()
	var r report.Report
	e.until("the report of "+pod+" is there", func(ctx context.Context) error {
		text, err := admin.CoreV1().Pods(e.namespace).GetLogs(pod, &v1.PodLogOptions{Container: container}).DoRaw(ctx)
		if err != nil {
			return err
		}
		r, err = parse(text)
		return err
	})
	return r
}

// execSees returns what a program finds that is started in a running container.
func (e *env) execSees(pod, container string) report.Report {
	e.t.Helper()
	r, err := parse([]byte(e.kubectl("exec", pod, "-c", container, "--", realnode.ProbePath, "report", tryAll)))
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

func parse(text []byte) (report.Report, error) {
	var r report.Report
	line, _, ok := bytes.Cut(text, []byte("\n"))
	if !ok {
		return r, fmt.Errorf("no whole line in %q", text)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("report %q: %w", line, err)
	}
	return r, nil
}

func (e *env) kubectl(args ...string) string {
	e.t.Helper()
	cmd := exec.CommandContext(e.t.Context(), kubectl, append([]string{"--kubeconfig", cluster.Kubeconfig(), "-n", e.namespace}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		e.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

// end makes a container's first process end in order, unless its pod fails before. It returns whether it did. The program
// that asks it to may be gone before it has said so, which is no error, and a kubelet that was just started does
// not know its pods at once.
func (e *env) end(pod, container string) (ended bool) {
	e.t.Helper()
	e.until(container+" of "+pod+" is told to end", func(ctx context.Context) error {
		if e.get(pod).Status.Phase == v1.PodFailed {
			return nil
		}
		cmd := exec.CommandContext(ctx, kubectl, "--kubeconfig", cluster.Kubeconfig(), "-n", e.namespace,
			"exec", pod, "-c", container, "--", realnode.ProbePath, "end")
		if out, err := cmd.CombinedOutput(); err != nil && !strings.Contains(string(out), "exit code 137") {
			return fmt.Errorf("%w: %s", err, out)
		}
		ended = true
		return nil
	})
	return ended
}

// tryAll makes the probe try every card of the machine by number.
const tryAll = "--try=240:0-7"

type option func(*v1.Pod)

// pod makes a pod with one container "main" that reports and waits; amount 0 asks for nothing.
func pod(name, res string, amount int64, options ...option) *v1.Pod {
	none, now := false, int64(1)
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Spec: v1.PodSpec{
			SchedulerName: contract.SchedulerName, AutomountServiceAccountToken: &none, TerminationGracePeriodSeconds: &now,
			Containers: []v1.Container{container("main", res, amount, "serve", tryAll)},
		},
	}
	if amount == 0 {
		p.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	for _, o := range options {
		o(p)
	}
	return p
}

func container(name, res string, amount int64, args ...string) v1.Container {
	c := v1.Container{Name: name, Image: realnode.ProbeImage, ImagePullPolicy: v1.PullNever, Args: args}
	if amount > 0 {
		c.Resources.Limits = v1.ResourceList{v1.ResourceName(res): *resource.NewQuantity(amount, resource.DecimalSI)}
	}
	return c
}

func with(c v1.Container) option {
	return func(p *v1.Pod) { p.Spec.Containers = append(p.Spec.Containers, c) }
}

func withInit(c v1.Container) option {
	return func(p *v1.Pod) { p.Spec.InitContainers = append(p.Spec.InitContainers, c) }
}

// delayed puts an init container before the others that takes some time and no card.
func delayed(d time.Duration) option {
	return withInit(container("delay", "", 0, "sleep", "--for="+d.String()))
}

// recorded returns what a pod's record gives a container.
func recorded(t *testing.T, p *v1.Pod, container string) []contract.CardAllocation {
	t.Helper()
	r, err := contract.DecodeAllocation(p.Annotations[names.AllocationKey])
	if err != nil {
		t.Fatalf("record of %s: %v", p.Name, err)
	}
	for _, c := range r.Containers {
		if c.Name == container {
			return c.Cards
		}
	}
	t.Fatalf("the record of %s does not name container %s", p.Name, container)
	return nil
}

// check compares a report with the cards a container should have: the environment, the device nodes by their
// numbers, and what it can open.
func check(t *testing.T, what string, r report.Report, cards []contract.CardAllocation) {
	t.Helper()
	var minors, sizes []string
	var nodes []report.Node
	for _, c := range cards {
		minors = append(minors, fmt.Sprint(c.Minor))
		sizes = append(sizes, fmt.Sprint(c.MemoryMiB))
		nodes = append(nodes, report.Node{Path: fmt.Sprintf("/dev/gcu%d", c.Minor), Major: 240, Minor: uint32(c.Minor), Open: "ENXIO"})
	}
	if len(cards) > 0 {
		nodes = append(nodes, report.Node{Path: contract.ControlDevice, Major: 240, Minor: realnode.ControlMinor, Open: "ENXIO"})
	}
	if got, want := r.Env[contract.EnvVisibleDevices], strings.Join(minors, ","); got != want {
		t.Errorf("%s: %s=%q, want %q", what, contract.EnvVisibleDevices, got, want)
	}
	if got, want := r.Env[contract.EnvUsableMemory], strings.Join(sizes, ","); got != want {
		t.Errorf("%s: %s=%q, want %q", what, contract.EnvUsableMemory, got, want)
	}
	if !slices.Equal(r.Nodes, nodes) {
		t.Errorf("%s: device nodes %+v, want %+v", what, r.Nodes, nodes)
	}
	for _, n := range r.Tried {
		want := "EPERM"
		if slices.ContainsFunc(cards, func(c contract.CardAllocation) bool { return uint32(c.Minor) == n.Minor }) {
			want = "ENXIO"
		}
		if n.Open != want {
			t.Errorf("%s: opening %d:%d gives %s, want %s", what, n.Major, n.Minor, n.Open, want)
		}
	}
}

// seesItsOwn checks each container of a running pod that asks for cards against the pod's record.
func (e *env) seesItsOwn(name string, containers ...string) {
	e.t.Helper()
	p := e.get(name)
	for _, c := range containers {
		check(e.t, fmt.Sprintf("pod %s, container %s", name, c), e.sees(name, c), recorded(e.t, p, c))
	}
}
