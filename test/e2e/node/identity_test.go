package node_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	rounds = flag.Int("node.rounds", 4, "rounds of TestSameSizeInRandomOrder; make e2e-node and make test-full take 20")
	seed   = flag.Uint64("node.seed", 0, "seed of random orders; 0 takes one of the clock")
)

// TestSameSizeInRandomOrder makes pods that differ in nothing but their cards, in random order and with random delays
// before the container that has the card. Allocation order, start order and size tell nothing then.
func TestSameSizeInRandomOrder(t *testing.T) {
	e := newEnv(t)
	startProgram(t)
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("-node.seed=%d", s)
	random := rand.New(rand.NewPCG(s, 1))
	for round := range *rounds {
		var list []string
		for i := range 8 {
			name := fmt.Sprintf("r%d-%d", round, i)
			list = append(list, name)
			e.create(pod(name, memory, 20, delayed(time.Duration(random.IntN(300))*time.Millisecond)))
		}
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		used := map[int]int{}
		for _, name := range list {
			p := e.running(name)
			e.seesItsOwn(name, "main")
			used[recorded(t, p, "main")[0].Minor]++
		}
		if len(used) < 4 {
			t.Errorf("round %d used %d cards, want at least 4, or it shows nothing", round, len(used))
		}
		// The next round comes while these go.
		for _, name := range list {
			if err := admin.CoreV1().Pods(e.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCrashLoop: a container that crashes and comes back again and again keeps its card, while pods of its size come
// beside it.
func TestCrashLoop(t *testing.T) {
	e := newEnv(t)
	startProgram(t)
	looping := func(p *v1.Pod) { p.Spec.Containers[0].Args = []string{"crash", "--after=300ms", tryAll} }
	e.create(pod("old", memory, 30, looping))
	e.until("old has crashed", func(ctx context.Context) error { return e.restarted(ctx, "old", 1) })
	for i := range 2 {
		name := fmt.Sprintf("new-%d", i)
		e.create(pod(name, memory, 30))
		e.running(name)
		e.seesItsOwn(name, "main")
		before := e.get("old").Status.ContainerStatuses[0].RestartCount
		e.until("old has crashed again", func(ctx context.Context) error { return e.restarted(ctx, "old", before+1) })
		e.seesItsOwn("old", "main")
	}
}

// restarted says whether the first container of a pod was started again at least so many times.
func (e *env) restarted(ctx context.Context, name string, times int32) error {
	p, err := admin.CoreV1().Pods(e.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(p.Status.ContainerStatuses) == 0 {
		return errors.New("no container yet")
	}
	if n := p.Status.ContainerStatuses[0].RestartCount; n < times {
		return fmt.Errorf("%d restarts, want %d", n, times)
	}
	return nil
}

// TestContainersOfOnePod: each container of a pod sees its own entry of the record, also where kubelet gives an
// init container's IDs to another one.
func TestContainersOfOnePod(t *testing.T) {
	e := newEnv(t)
	startProgram(t)
	always := v1.ContainerRestartPolicyAlways
	sidecar := container("sidecar", memory, 4, "serve", tryAll)
	sidecar.RestartPolicy = &always
	tests := map[string]struct {
		pod        *v1.Pod
		containers []string
	}{
		"init larger than app":  {pod("init-large", memory, 8, withInit(container("init", memory, 16, "report", tryAll))), []string{"init", "main"}},
		"init smaller than app": {pod("init-small", memory, 16, withInit(container("init", memory, 8, "report", tryAll))), []string{"init", "main"}},
		"init as large as app":  {pod("init-same", memory, 8, withInit(container("init", memory, 8, "report", tryAll))), []string{"init", "main"}},
		"sidecar and init": {
			pod("sidecar", memory, 6, withInit(sidecar), withInit(container("init", memory, 6, "report", tryAll))),
			[]string{"sidecar", "init", "main"},
		},
		"two of one size": {pod("two", memory, 8, with(container("other", memory, 8, "serve", tryAll))), []string{"main", "other"}},
		"two sizes and none": {
			pod("three", memory, 8, with(container("other", memory, 3, "serve", tryAll)), with(container("log", "", 0, "serve", tryAll))),
			[]string{"main", "other"},
		},
		"slices and a card": {pod("kinds", slice, 1, with(container("other", whole, 1, "serve", tryAll))), []string{"main", "other"}},
	}
	for _, tt := range tests {
		e.create(tt.pod)
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			e := &env{t: t, namespace: e.namespace}
			e.running(tt.pod.Name)
			e.seesItsOwn(tt.pod.Name, tt.containers...)
		})
	}
	check(t, "a container that asks for nothing", e.sees("three", "log"), nil)
}

// TestKubeletRestart: containers run on with their cards, and what starts afterwards gets its own.
func TestKubeletRestart(t *testing.T) {
	e := newEnv(t)
	a := startProgram(t)
	looping := func(p *v1.Pod) { p.Spec.Containers[0].Args = []string{"crash", "--after=1s", tryAll} }
	e.create(pod("a", memory, 30), pod("b", memory, 30), pod("c", memory, 30, looping))
	for _, name := range []string{"a", "b"} {
		e.running(name)
	}
	e.until("c was there", func(ctx context.Context) error { return e.restarted(ctx, "c", 1) })
	e.restartKubelet(a)
	e.create(pod("d", memory, 30), pod("e", memory, 30))
	for _, name := range []string{"a", "b", "d", "e"} {
		p := e.running(name)
		if n := p.Status.ContainerStatuses[0].RestartCount; n != 0 {
			t.Errorf("pod %s was restarted %d times", name, n)
		}
		e.seesItsOwn(name, "main")
		check(t, name+", exec", e.execSees(name, "main"), recorded(t, p, "main"))
	}
	// Whether a container that is down at that moment comes back is kubelet's choice; with a wrong card it must not.
	if p := e.get("c"); p.Status.Phase != v1.PodFailed {
		before := p.Status.ContainerStatuses[0].RestartCount
		e.until("c crashes again", func(ctx context.Context) error { return e.restarted(ctx, "c", before+2) })
		e.seesItsOwn("c", "main")
	} else {
		t.Logf("c: %s: %s", p.Status.Reason, p.Status.Message)
	}
}

func (e *env) restartKubelet(a *program) {
	e.t.Helper()
	if err := machine.RestartKubelet(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
	e.ready(a)
}

// ready waits until node and agent are what they were before a restart.
func (e *env) ready(a *program) {
	e.t.Helper()
	if err := machine.WaitReady(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
	a.waitReady()
}

// TestKubeletRestartBeforeCreate restarts kubelet when it has allocated a pod's devices and not yet created the container
// that has them: an init container stands before it for as long as the test wants.
func TestKubeletRestartBeforeCreate(t *testing.T) {
	e := newEnv(t)
	a := startProgram(t)
	held := func() option { return withInit(container("hold", "", 0, "sleep", "--for=1h")) }
	var list []string
	for i := range 4 {
		name := fmt.Sprintf("p%d", i)
		list = append(list, name)
		e.create(pod(name, memory, 30, held()))
	}
	for _, name := range list {
		e.until(name+" is held", func(ctx context.Context) error {
			p, err := admin.CoreV1().Pods(e.namespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil && (len(p.Status.InitContainerStatuses) == 0 || p.Status.InitContainerStatuses[0].State.Running == nil) {
				err = errors.New("init container does not run")
			}
			return err
		})
	}
	e.restartKubelet(a)
	lived := 0
	for i := len(list) - 1; i >= 0; i-- {
		e.end(list[i], "hold")
	}
	for _, name := range list {
		// Kubelet admits its pods again at its start, and fails for good those that wait for a container whose plugin
		// is not back yet. Whether the agent was quick enough is not what this test is about.
		e.until(name+" runs or has failed", func(ctx context.Context) error {
			p, err := admin.CoreV1().Pods(e.namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil || p.Status.Phase == v1.PodFailed {
				return err
			}
			return runs(p)
		})
		if p := e.get(name); p.Status.Phase == v1.PodFailed {
			t.Logf("%s: %s: %s", name, p.Status.Reason, p.Status.Message)
			continue
		}
		lived++
		e.seesItsOwn(name, "main")
	}
	t.Logf("%d of %d pods lived through it", lived, len(list))
}

// TestPluginFolderWiped: somebody empties kubelet's folder. What runs keeps its card; what starts gets its own, by
// pod-resources while the checkpoint is away.
func TestPluginFolderWiped(t *testing.T) {
	e := newEnv(t)
	a := startProgram(t)
	looping := func(p *v1.Pod) { p.Spec.Containers[0].Args = []string{"crash", "--after=300ms", tryAll} }
	e.create(pod("a", memory, 30), pod("c", memory, 30, looping))
	e.running("a")
	e.until("c was there", func(ctx context.Context) error { return e.restarted(ctx, "c", 1) })
	if err := machine.WipePluginDir(); err != nil {
		t.Fatal(err)
	}
	before := e.get("c").Status.ContainerStatuses[0].RestartCount
	e.until("c crashes again", func(ctx context.Context) error { return e.restarted(ctx, "c", before+2) })
	e.seesItsOwn("c", "main")
	e.create(pod("b", memory, 30), pod("d", memory, 30))
	for _, name := range []string{"a", "b", "d"} {
		e.running(name)
		e.seesItsOwn(name, "main")
	}
	e.restartKubelet(a)
	e.create(pod("f", memory, 30))
	for _, name := range []string{"a", "b", "d", "f"} {
		e.running(name)
		e.seesItsOwn(name, "main")
	}
}

// TestEngineRestart: containerd is restarted while pods run, as its upgrade does.
func TestEngineRestart(t *testing.T) {
	e := newEnv(t)
	startProgram(t)
	e.create(pod("a", memory, 30))
	p := e.running("a")
	if err := machine.RestartEngine(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := machine.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.create(pod("b", memory, 30))
	e.running("b")
	e.seesItsOwn("b", "main")
	check(t, "a, exec", e.execSees("a", "main"), recorded(t, p, "main"))
}
