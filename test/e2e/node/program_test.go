package node_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	deviceagent "github.com/topscloud/topscloud/deviceplugin/agent"
	"github.com/topscloud/topscloud/eflib/sim"
	"github.com/topscloud/topscloud/internal/contract"
)

// program is gcu-device-plugin as a process of its own, with the rights it ships with.
type program struct {
	t       *testing.T
	cmd     *exec.Cmd
	address string
	control string
	stop    func()
}

// agentBinary is built once for all tests.
var agentBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(machine.Scratch(), "gcu-device-plugin")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", path, "../../../deviceplugin/cmd/gcu-device-plugin")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build gcu-device-plugin: %w\n%s", err, out)
	}
	return path, nil
})

// agentKubeconfig is what a pod of the agent's DaemonSet on this node would have.
func agentKubeconfig(t *testing.T) string {
	t.Helper()
	config, err := cluster.ConfigForAgent(t.Context(), machine.Name())
	if err != nil {
		t.Fatal(err)
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	c.AuthInfos["a"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	c.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "a"}
	c.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// startProgram starts the agent and waits until kubelet listens to it and the node offers all of its cards.
func startProgram(t *testing.T, args ...string) *program {
	t.Helper()
	shareCards(t)
	p := spawnProgram(t, args...)
	t.Cleanup(p.stop)
	p.waitReady()
	waitOffered(t, 41*8, 6*8, 8)
	return p
}

func spawnProgram(t *testing.T, args ...string) *program {
	t.Helper()
	binary, err := agentBinary()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, address: listener.Addr().String(), control: filepath.Join(machine.Scratch(), "faults")}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	logFile := machine.LogFile("gcu-device-plugin")
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(binary, append([]string{
		"--node-name=" + machine.Name(), "--kubeconfig=" + agentKubeconfig(t), "--host-root=" + machine.HostRoot(),
		"--kubelet-dir=" + filepath.Dir(machine.PluginDir()), "--pod-resources-socket=" + machine.PodResourcesSocket(),
		"--cdi-dir=" + machine.CDIDir(),
		"--state-dir=" + filepath.Join(machine.Scratch(), "agent"), "--book-socket=" + filepath.Join(machine.Scratch(), "book.sock"), "--cri-socket=" + machine.EngineSocket(), "--nri-socket=" + machine.NRISocket(),
		"--device-source=sim", "--machine=" + preset, "--control-file=" + p.control, "--health-interval=500ms", "--health-probation=1s",
		"--instance=" + rand.String(6), "--listen=" + p.address, "-v=2",
	}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	// The agent does not outlive the tests, however they end.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	p.stop = sync.OnceFunc(func() {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		select {
		case err := <-done:
			if err != nil && p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				text, _ := os.ReadFile(logFile)
				t.Errorf("the agent ended with %v\n%s", err, text[max(0, len(text)-2000):])
			}
		case <-time.After(20 * time.Second):
			t.Error("the agent does not end when it is told to")
			_ = p.cmd.Process.Kill()
			<-done
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *program) waitReady() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	err := poll(ctx, func(ctx context.Context) error {
		status, text, err := p.ask(ctx, "/readyz")
		if err == nil && status != http.StatusOK {
			err = errors.New(text)
		}
		return err
	})
	if err != nil {
		text, _ := os.ReadFile(machine.LogFile("gcu-device-plugin"))
		p.t.Fatalf("the agent is not ready: %v\n%s", err, text[max(0, len(text)-2000):])
	}
}

func (p *program) ask(ctx context.Context, path string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path, nil)
	if err != nil {
		return 0, "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// kill ends the agent as the kernel does when memory is short.
func (p *program) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	p.stop()
}

func (p *program) faults(lines ...string) {
	p.t.Helper()
	parsed, err := sim.ParseFaults(strings.Join(lines, "\n"))
	if err == nil {
		err = sim.WriteFaults(p.control, parsed...)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// shareCards labels the node, as an administrator or the operator does.
func shareCards(t *testing.T) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, names.SharingLabel)
	if _, err := admin.CoreV1().Nodes().Patch(t.Context(), machine.Name(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitOffered waits until the node says that so many units, slices and cards are allocatable.
func waitOffered(t *testing.T, units, slices, cards int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := poll(ctx, func(ctx context.Context) error {
		node, err := admin.CoreV1().Nodes().Get(ctx, machine.Name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		var got [3]int64
		for i, name := range []string{memory, slice, whole} {
			q := node.Status.Allocatable[v1.ResourceName(name)]
			got[i] = q.Value()
		}
		if want := [3]int64{units, slices, cards}; got != want {
			return fmt.Errorf("memory, slices, cards allocatable %v, want %v", got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestProgram runs the node agent as it ships: shares and whole cards placed by our scheduler, a pod that another
// scheduler placed, and what kubectl exec sees.
func TestProgram(t *testing.T) {
	e := newEnv(t)
	p := startProgram(t)
	e.create(pod("share", memory, 8), pod("slices", slice, 2), pod("cards", whole, 2))
	foreign := pod("foreign", memory, 5)
	foreign.Spec.SchedulerName = v1.DefaultSchedulerName
	e.create(foreign)
	for _, name := range []string{"share", "slices", "cards", "foreign"} {
		e.running(name)
		e.seesItsOwn(name, "main")
		check(t, name+", exec", e.execSees(name, "main"), recorded(t, e.get(name), "main"))
	}
	cards := recorded(t, e.get("cards"), "main")
	for _, other := range []string{"share", "slices", "foreign"} {
		if c := recorded(t, e.get(other), "main"); c[0].Minor == cards[0].Minor || c[0].Minor == cards[1].Minor {
			t.Errorf("%s shares card %d with a pod that has it alone", other, c[0].Minor)
		}
	}
	e.until("the share is marked as assigned", func(context.Context) error {
		if got := e.get("share").Annotations[names.AssignedKey]; got != "true" {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	_, metrics, err := p.ask(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gcu_device_plugin_adopted_pods_total 1", "gcu_device_plugin_memory_limit_advisory 1", "gcu_device_plugin_nri_connected 1"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %q", want)
		}
	}
}

// TestProgramKilledBetweenAllocateAndStart: the agent dies after kubelet got its tickets and before the container
// starts; the next one knows what they are.
func TestProgramKilledBetweenAllocateAndStart(t *testing.T) {
	e := newEnv(t)
	p := startProgram(t)
	e.create(pod("a", memory, 20, delayed(3*time.Second)), pod("b", memory, 20, delayed(3*time.Second)))
	for _, name := range []string{"a", "b"} {
		e.until(name+" was admitted", func(context.Context) error {
			for _, c := range e.get(name).Status.InitContainerStatuses {
				if c.State.Running != nil {
					return nil
				}
			}
			return errors.New("its init container does not run")
		})
	}
	p.kill()
	next := spawnProgram(t)
	t.Cleanup(next.stop)
	next.waitReady()
	for _, name := range []string{"a", "b"} {
		e.running(name)
		e.seesItsOwn(name, "main")
	}
}

// TestProgramCardFails: a card fails while in use. The pod's status points at it, other pods go on, new ones go
// elsewhere, and the card comes back by itself.
func TestProgramCardFails(t *testing.T) {
	e := newEnv(t)
	p := startProgram(t)
	t.Cleanup(func() { p.faults() })
	e.create(pod("p", whole, 1))
	e.running("p")
	minor := recorded(t, e.get("p"), "main")[0].Minor
	p.faults(fmt.Sprintf("unhealthy %d a fan is stuck", minor))
	e.until("the pod's status says that its card is unhealthy", func(context.Context) error {
		for _, c := range e.get("p").Status.ContainerStatuses {
			for _, r := range c.AllocatedResourcesStatus {
				for _, h := range r.Resources {
					if h.Health == v1.ResourceHealthStatusUnhealthy {
						return nil
					}
				}
			}
		}
		return fmt.Errorf("%+v", e.get("p").Status.ContainerStatuses)
	})
	e.until("the node says so too", func(ctx context.Context) error {
		node, err := admin.CoreV1().Nodes().Get(ctx, machine.Name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == deviceagent.ConditionHealthy && c.Status == v1.ConditionFalse && strings.Contains(c.Message, "a fan is stuck") {
				return nil
			}
		}
		return fmt.Errorf("%+v", node.Status.Conditions)
	})
	// Seven cards are left, and kubelet counts the pod on the eighth.
	e.create(pod("q", whole, 7))
	e.running("q")
	e.seesItsOwn("q", "main")
	if slices.ContainsFunc(recorded(t, e.get("q"), "main"), func(c contract.CardAllocation) bool { return c.Minor == minor }) {
		t.Error("the broken card was given out")
	}
	p.faults()
	if err := e.deleteAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	err := poll(ctx, func(ctx context.Context) error {
		node, err := admin.CoreV1().Nodes().Get(ctx, machine.Name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		q := node.Status.Allocatable[whole]
		if q.Value() != 8 {
			return fmt.Errorf("%d cards", q.Value())
		}
		return nil
	})
	if err != nil {
		t.Errorf("the card does not come back: %v", err)
	}
}

// TestProgramRollingUpdate: the new agent registers before the old one stops; nothing is ever taken away.
func TestProgramRollingUpdate(t *testing.T) {
	e := newEnv(t)
	before := startProgram(t)
	e.create(pod("a", memory, 8))
	e.running("a")
	watch, err := admin.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + machine.Name()})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	next := spawnProgram(t)
	t.Cleanup(next.stop)
	next.waitReady()
	before.stop()
	e.create(pod("b", memory, 8))
	e.running("b")
	for _, name := range []string{"a", "b"} {
		e.seesItsOwn(name, "main")
	}
	for {
		select {
		case event := <-watch.ResultChan():
			node, ok := event.Object.(*v1.Node)
			if !ok {
				continue
			}
			if q := node.Status.Allocatable[memory]; q.Value() < 40*8 {
				t.Errorf("%d memory units were allocatable during the update", q.Value())
			}
			continue
		default:
		}
		break
	}
}
