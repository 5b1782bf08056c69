package node_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/topscloud/topscloud/deviceplugin/kubelet/kubelettest"
	"github.com/topscloud/topscloud/sandbox/realnode"
)

// subject is a kubelet that a scenario runs on: the real one, or the imitation other tests use.
type subject interface {
	pluginDir() string
	// counts returns allocatable and capacity of a resource.
	counts(resource string) (allocatable, capacity int, err error)
	// run hands a pod to kubelet and returns how it went: "running", or "failed" with the reason.
	run(p *v1.Pod) string
	// crash ends the first container of a running pod and returns when it runs again, or the pod has failed.
	crash(p *v1.Pod) string
	// hold hands a pod to kubelet whose first init container runs until it is released, and returns when it runs.
	hold(p *v1.Pod)
	// release ends that container and returns how the pod went on.
	release(p *v1.Pod) string
	// remove ends a pod and returns when kubelet has none of it.
	remove(p *v1.Pod)
	restart()
	wipe()
}

// scenario is what happens to one plugin of eight devices.
type scenario struct {
	prefers bool
	// alone says that it restarts kubelet or empties its folder; the others run side by side, since each
	// has a resource of its own.
	alone bool
	play  func(s *stage)
}

// stage is a scenario that runs.
type stage struct {
	t *testing.T
	subject
	*recorder
	sockets int
}

// register serves the plugin on a new socket and waits until kubelet counts its devices.
func (s *stage) register() {
	s.t.Helper()
	s.sockets++
	s.serve(s.t, fmt.Sprintf("%s-%d", filepath.Base(s.resource), s.sockets))
	s.await(8, 8)
}

// await waits for allocatable and capacity and notes them.
func (s *stage) await(allocatable, capacity int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	err := poll(ctx, func(context.Context) error {
		a, c, err := s.counts(s.resource)
		if err == nil && (a != allocatable || c != capacity) {
			err = fmt.Errorf("%d allocatable of %d, want %d of %d", a, c, allocatable, capacity)
		}
		return err
	})
	if err != nil {
		s.note("never so many: %v", err)
		return
	}
	s.note("counts %d of %d", allocatable, capacity)
}

// pod makes a pod of the scenario's resource; its containers are made by asks.
func (s *stage) pod(name string, options ...option) *v1.Pod {
	p := pod(fmt.Sprintf("%s-%s", filepath.Base(s.resource), name), "", 0, options...)
	p.UID = types.UID(p.Name) // for the imitation
	p.Spec.Containers = p.Spec.Containers[1:]
	p.Spec.NodeName = nodeName
	return p
}

func (s *stage) asks(name string, amount int64) option {
	return with(container(name, s.resource, amount, "serve"))
}

func (s *stage) play(p *v1.Pod) {
	s.note("pod")
	s.note("pod is %s", s.run(p))
}

// scenarios are named by what they show.
func scenarios() map[string]scenario {
	always := v1.ContainerRestartPolicyAlways
	return map[string]scenario{
		"one container": {play: func(s *stage) {
			s.register()
			s.play(s.pod("p", s.asks("a", 2)))
		}},
		"with preferences": {prefers: true, play: func(s *stage) {
			s.register()
			s.play(s.pod("p", s.asks("a", 2), s.asks("b", 3)))
		}},
		"preferences and an init container": {prefers: true, play: func(s *stage) {
			s.register()
			s.play(s.pod("p", withInit(container("i", s.resource, 2, "report")), s.asks("a", 3)))
		}},
		"two containers": {play: func(s *stage) {
			s.register()
			s.play(s.pod("p", s.asks("a", 2), s.asks("b", 3)))
		}},
		"init container larger": {play: func(s *stage) {
			s.register()
			s.play(s.pod("p", withInit(container("i", s.resource, 3, "report")), s.asks("a", 2)))
		}},
		"init container smaller": {play: func(s *stage) {
			s.register()
			s.play(s.pod("p", withInit(container("i", s.resource, 2, "report")), s.asks("a", 3)))
		}},
		"init container alike": {play: func(s *stage) {
			s.register()
			s.play(s.pod("p", withInit(container("i", s.resource, 2, "report")), s.asks("a", 2)))
		}},
		"sidecar": {play: func(s *stage) {
			s.register()
			sidecar := container("s", s.resource, 2, "serve")
			sidecar.RestartPolicy = &always
			s.play(s.pod("p", withInit(sidecar), s.asks("a", 2)))
		}},
		"crash": {play: func(s *stage) {
			s.register()
			p := s.pod("p", s.asks("a", 2))
			s.play(p)
			s.note("crash: %s", s.crash(p))
		}},
		"IDs come back": {play: func(s *stage) {
			s.register()
			p := s.pod("p", s.asks("a", 8))
			s.play(p)
			s.remove(p)
			s.forget()
			s.play(s.pod("q", s.asks("a", 8)))
		}},
		"kubelet restart": {alone: true, play: func(s *stage) {
			s.register()
			p := s.pod("p", s.asks("a", 2))
			s.play(p)
			s.stop()
			s.restart()
			s.note("restarted")
			s.register()
			s.note("crash: %s", s.crash(p))
			s.play(s.pod("q", s.asks("a", 2)))
		}},
		// A plugin that is quick wins a race here: kubelet opens its socket a moment before it admits its pods again,
		// and a pod of a plugin that is back by then lives. The imitation takes the worse end, which is this one.
		"kubelet restart before a container, plugin late": {alone: true, play: func(s *stage) {
			s.register()
			p := s.pod("p", withInit(container("hold", "", 0, "sleep", "--for=1h")), s.asks("a", 2))
			s.hold(p)
			s.note("held")
			s.stop()
			s.restart()
			s.note("restarted")
			s.note("pod is %s", s.release(p))
			s.register()
		}},
		"kubelet restart after a crash": {alone: true, play: func(s *stage) {
			s.register()
			p := s.pod("p", s.asks("a", 2))
			s.play(p)
			s.stop()
			s.restart()
			s.note("restarted")
			s.note("crash: %s", s.crash(p))
			s.register()
			s.note("crash: %s", s.crash(p))
		}},
		"folder wiped": {alone: true, play: func(s *stage) {
			s.register()
			p := s.pod("p", s.asks("a", 2))
			s.play(p)
			s.wipe()
			s.note("wiped")
			s.note("crash: %s", s.crash(p))
			s.play(s.pod("q", s.asks("a", 2)))
			s.stop()
			s.await(0, 8)
			s.restart()
			s.note("restarted")
			s.register()
			s.note("crash: %s", s.crash(p))
		}},
		"plugin comes again": {play: func(s *stage) {
			s.register()
			p := s.pod("p", s.asks("a", 2))
			s.play(p)
			s.stop()
			s.await(0, 8)
			s.register()
			s.note("crash: %s", s.crash(p))
		}},
		"no plugin": {play: func(s *stage) {
			s.register()
			s.stop()
			s.await(0, 8)
			s.play(s.pod("p", s.asks("a", 2)))
		}},
		"free devices unhealthy": {play: func(s *stage) {
			s.register()
			s.play(s.pod("p", s.asks("a", 2)))
			s.setHealth(pluginapi.Unhealthy, false)
			s.await(2, 8)
			s.setHealth(pluginapi.Healthy, false)
			s.await(8, 8)
			s.play(s.pod("q", s.asks("a", 6)))
		}},
		"held devices unhealthy": {play: func(s *stage) {
			s.register()
			p := s.pod("p", s.asks("a", 2))
			s.play(p)
			s.setHealth(pluginapi.Unhealthy, true)
			s.await(6, 8)
			s.note("crash: %s", s.crash(p))
			s.play(s.pod("q", s.asks("a", 4)))
		}},
		"allocate refused": {play: func(s *stage) {
			s.register()
			s.refuseAllocate = 1
			s.play(s.pod("p", s.asks("a", 2), s.asks("b", 2)))
			s.play(s.pod("q", s.asks("a", 8)))
		}},
		"start refused": {play: func(s *stage) {
			s.register()
			s.refuseStart = 1
			s.play(s.pod("p", s.asks("a", 2)))
		}},
	}
}

// TestConformance plays each scenario on the imitation of kubelet and on the real one; the plugin must see
// the same.
func TestConformance(t *testing.T) {
	realnode.Require(t)
	all := scenarios()
	for _, alone := range []bool{false, true} {
		t.Run(map[bool]string{false: "together", true: "alone"}[alone], func(t *testing.T) {
			for n, name := range slices.Sorted(maps.Keys(all)) {
				if sc := all[name]; sc.alone == alone {
					t.Run(name, func(t *testing.T) {
						if !alone {
							t.Parallel()
						}
						conforms(t, sc, fmt.Sprintf("conformance.topscloud.dev/s%d", n))
					})
				}
			}
		})
	}
}

func conforms(t *testing.T, sc scenario, resource string) {
	play := func(s subject) []string {
		st := &stage{t: t, subject: s, recorder: newRecorder(resource, s.pluginDir(), sc.prefers)}
		defer st.stop()
		sc.play(st)
		return st.lines()
	}
	imitated := play(&imitation{t: t, k: kubelettest.New(t, kubelettest.Dir(t))})
	real := play(&actual{newEnv(t)})
	if diff := cmp.Diff(real, imitated); diff != "" {
		t.Errorf("what a plugin sees (-kubelet +imitation):\n%s", diff)
	}
	t.Logf("%q", real)
}

// imitation is the kubelet of other tests.
type imitation struct {
	t *testing.T
	k *kubelettest.Kubelet
}

func (i *imitation) pluginDir() string { return i.k.PluginDir() }

func (i *imitation) counts(resource string) (int, int, error) {
	return i.k.Allocatable(resource), i.k.Capacity(resource), nil
}

func (i *imitation) run(p *v1.Pod) string {
	var refused *kubelettest.AdmissionError
	switch err := i.k.Admit(p); {
	case errors.As(err, &refused):
		return "failed: " + refused.Reason
	case err != nil:
		i.t.Fatal(err)
	}
	for _, c := range p.Spec.InitContainers {
		i.start(p, c.Name)
		if c.RestartPolicy == nil {
			i.k.Exit(p.UID, c.Name)
		}
	}
	for _, c := range p.Spec.Containers {
		i.start(p, c.Name)
	}
	return "running"
}

// start tries until it works, as kubelet does.
func (i *imitation) start(p *v1.Pod, container string) {
	var err error
	for range 5 {
		if _, err = i.k.Start(p.UID, container); err == nil {
			return
		}
	}
	i.t.Fatalf("start of %s: %v", container, err)
}

func (i *imitation) crash(p *v1.Pod) string {
	if !i.k.Active(p.UID) {
		return "failed"
	}
	i.k.Exit(p.UID, p.Spec.Containers[0].Name)
	i.start(p, p.Spec.Containers[0].Name)
	return "running"
}

func (i *imitation) hold(p *v1.Pod) {
	if err := i.k.Admit(p); err != nil {
		i.t.Fatal(err)
	}
	i.start(p, p.Spec.InitContainers[0].Name)
}

func (i *imitation) release(p *v1.Pod) string {
	if !i.k.Active(p.UID) {
		return "failed: UnexpectedAdmissionError"
	}
	i.k.Exit(p.UID, p.Spec.InitContainers[0].Name)
	for _, c := range p.Spec.Containers {
		i.start(p, c.Name)
	}
	return "running"
}

func (i *imitation) remove(p *v1.Pod) { i.k.Remove(p.UID) }

func (i *imitation) restart() {
	if err := i.k.Restart(); err != nil {
		i.t.Fatal(err)
	}
}

func (i *imitation) wipe() {
	entries, err := os.ReadDir(i.k.PluginDir())
	if err != nil {
		i.t.Fatal(err)
	}
	for _, entry := range entries {
		if err := os.Remove(filepath.Join(i.k.PluginDir(), entry.Name())); err != nil {
			i.t.Fatal(err)
		}
	}
}

// actual is the real node's kubelet, reached through the API.
type actual struct{ *env }

func (a *actual) pluginDir() string { return machine.PluginDir() }

func (a *actual) counts(resource string) (int, int, error) {
	node, err := admin.CoreV1().Nodes().Get(a.t.Context(), nodeName, metav1.GetOptions{})
	if err != nil {
		return 0, 0, err
	}
	allocatable, capacity := node.Status.Allocatable[v1.ResourceName(resource)], node.Status.Capacity[v1.ResourceName(resource)]
	return int(allocatable.Value()), int(capacity.Value()), nil
}

func (a *actual) run(p *v1.Pod) string {
	a.create(p)
	return a.settled(p.Name, 0)
}

// settled waits until a pod has failed, or runs with its first container started again so many times.
func (a *actual) settled(name string, restarts int32) string {
	a.t.Helper()
	outcome := ""
	a.until(name+" has settled", func(ctx context.Context) error {
		p, err := admin.CoreV1().Pods(a.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if p.Status.Phase == v1.PodFailed {
			outcome = "failed: " + p.Status.Reason
			return nil
		}
		outcome = "running"
		if err := a.restarted(ctx, name, restarts); err != nil {
			return err
		}
		return runs(p)
	})
	return outcome
}

func (a *actual) hold(p *v1.Pod) {
	a.create(p)
	a.until(p.Name+" is held", func(ctx context.Context) error {
		now, err := admin.CoreV1().Pods(a.namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if err == nil && (len(now.Status.InitContainerStatuses) == 0 || now.Status.InitContainerStatuses[0].State.Running == nil) {
			err = errors.New("init container does not run")
		}
		return err
	})
}

func (a *actual) release(p *v1.Pod) string {
	a.end(p.Name, p.Spec.InitContainers[0].Name)
	return a.settled(p.Name, 0)
}

func (a *actual) crash(p *v1.Pod) string {
	now := a.get(p.Name)
	if now.Status.Phase == v1.PodFailed {
		return "failed"
	}
	a.end(p.Name, p.Spec.Containers[0].Name)
	return a.settled(p.Name, now.Status.ContainerStatuses[0].RestartCount+1)
}

func (a *actual) remove(p *v1.Pod) {
	pods := admin.CoreV1().Pods(a.namespace)
	if err := pods.Delete(a.t.Context(), p.Name, metav1.DeleteOptions{}); err != nil {
		a.t.Fatal(err)
	}
	a.until(p.Name+" is gone", func(ctx context.Context) error {
		_, err := pods.Get(ctx, p.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("still there"))
	})
}

func (a *actual) restart() {
	if err := machine.RestartKubelet(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
	if err := machine.WaitReady(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
	// Before it listens, kubelet removes every socket in its folder: a plugin that opens one earlier loses it.
	a.until("kubelet takes registrations", func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(machine.PluginDir(), "kubelet.sock"))
		if err == nil {
			conn.Close()
		}
		return err
	})
}

func (a *actual) wipe() {
	if err := machine.WipePluginDir(); err != nil {
		a.t.Fatal(err)
	}
}
