package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/topscloud/topscloud/sandbox/binaries"
	"github.com/topscloud/topscloud/sandbox/pki"
	"github.com/topscloud/topscloud/sandbox/process"
	"github.com/topscloud/topscloud/sandbox/simnode"
)

// stopGrace is how long a component may take to end before it is killed.
const stopGrace = 10 * time.Second

// Sandbox is a running control plane. Its methods may be called from several goroutines.
type Sandbox struct {
	options   Options
	layout    Layout
	authority *pki.Authority
	admin     *rest.Config
	probe     *probe
	lock      *os.File

	nodes     *simnode.Manager
	stopNodes func()
	// stopPrograms ends the listener of what the nodes' programs count.
	stopPrograms func()
	// retired are nodes of the data folder that are not simulated any more.
	retired []string

	// mu guards procs, stopped and ports, which is replaced and never changed.
	mu      sync.Mutex
	procs   map[string]*process.Process
	stopped bool
	ports   map[string]int
}

// Start brings up a sandbox and returns when it is ready. The caller must Stop it, also to end the
// child processes of a failed test; ctx bounds the start only.
func Start(ctx context.Context, o Options) (*Sandbox, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if o.Binaries == (binaries.Set{}) {
		set, err := binaries.Ensure(ctx, binaries.Options{Log: o.Log})
		if err != nil {
			return nil, err
		}
		o.Binaries = set
	}
	s := &Sandbox{options: o, layout: Layout{o.DataDir}, procs: map[string]*process.Process{}}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		err := s.up(ctx)
		if err == nil {
			return s, nil
		}
		s.halt()
		// Between the choice of a port and its use another process may have taken it.
		if attempt < 3 && ctx.Err() == nil && strings.Contains(err.Error(), "address already in use") {
			fmt.Fprintln(o.Log, "a port was taken in the meantime; starting again on others")
			continue
		}
		s.close()
		return nil, fmt.Errorf("sandbox %s: %w", o.DataDir, err)
	}
}

// open takes the data folder and ends what a crashed predecessor left.
func (s *Sandbox) open(ctx context.Context) error {
	if err := s.layout.create(); err != nil {
		return err
	}
	lock, err := os.OpenFile(s.layout.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if r, rerr := process.ReadRecord(s.layout.PIDFile(Supervisor)); rerr == nil && r.Alive() {
			return fmt.Errorf("sandbox %s: already running, pid %d", s.layout.Dir, r.PID)
		}
		return fmt.Errorf("sandbox %s: already in use: %w", s.layout.Dir, err)
	}
	s.lock = lock
	err = func() error {
		if _, err := reapComponents(ctx, s.layout); err != nil {
			return err
		}
		if s.authority, err = pki.Open(s.layout.pki()); err != nil {
			return err
		}
		if s.probe, err = newProbe(s.authority); err != nil {
			return err
		}
		self, err := process.Self()
		if err != nil {
			return err
		}
		return self.WriteFile(s.layout.PIDFile(Supervisor))
	}()
	if err != nil {
		s.close()
	}
	return err
}

// up starts all parts once.
func (s *Sandbox) up(ctx context.Context) error {
	state, err := s.layout.readStateOrNew()
	if err != nil {
		return err
	}
	ports, err := choosePorts(state.Ports, s.listeners())
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.ports = ports
	s.mu.Unlock()
	s.retired = state.without(s.options.Machines)
	state.Ports, state.Machines = ports, nil
	for _, m := range s.options.Machines {
		state.Machines = append(state.Machines, m.Name+"="+m.Preset)
	}
	if err := s.layout.writeState(state); err != nil {
		return err
	}
	if s.admin, err = s.ConfigFor(adminUser, "system:masters"); err != nil {
		return err
	}
	if err := s.writeKubeconfig(s.layout.Kubeconfig(), adminUser, "system:masters"); err != nil {
		return err
	}
	if err := s.run(ctx, Etcd, s.etcdSpec); err != nil {
		return err
	}
	if err := s.run(ctx, APIServer, s.apiServerSpec); err != nil {
		return err
	}
	if err := s.bootstrap(ctx); err != nil {
		return err
	}
	return s.upRest(ctx)
}

// upRest starts what stands on the API server, side by side: each takes seconds on a small machine.
func (s *Sandbox) upRest(ctx context.Context) error {
	var wg sync.WaitGroup
	errs := make([]error, 4)
	part := func(i int, on bool, name string, spec func() (process.Spec, error)) {
		if on {
			wg.Go(func() { errs[i] = s.run(ctx, name, spec) })
		}
	}
	part(0, s.options.ControllerManager, ControllerManager, s.controllerManagerSpec)
	part(1, s.options.StockScheduler, StockScheduler, s.stockSchedulerSpec)
	part(2, s.options.GCUScheduler != "", GCUScheduler, s.gcuSchedulerSpec)
	wg.Go(func() { errs[3] = s.upNodes(ctx) })
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if s.options.ControllerManager {
		if err := s.settle(ctx); err != nil {
			return err
		}
	}
	if s.options.Prometheus != "" {
		return s.upPrometheus(ctx)
	}
	return nil
}

func (s *Sandbox) upNodes(ctx context.Context) error {
	admin, err := kubernetes.NewForConfig(s.RESTConfig())
	if err != nil {
		return err
	}
	if err := s.retireNodes(ctx, admin); err != nil {
		return err
	}
	config, err := s.ConfigFor(simNodesUser)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	so := simnode.Options{}
	if s.options.Agents {
		so.Client = func(ctx context.Context, node, account string) (kubernetes.Interface, error) {
			config, err := s.ConfigOnNode(ctx, node, account)
			if err != nil {
				return nil, err
			}
			return kubernetes.NewForConfig(config)
		}
	}
	if s.options.Exporters {
		so.Exporter = s.exporterAddress
	}
	nodes := simnode.NewManager(client, so)
	// The nodes live until Stop, not until the start is over.
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); nodes.Run(run) }()
	s.stopNodes = func() { cancel(); <-done }
	s.nodes = nodes
	for _, m := range s.options.Machines {
		if err := nodes.Add(ctx, m); err != nil {
			return err
		}
	}
	if len(s.options.Machines) == 0 {
		return nil
	}
	wait, cancelWait := context.WithTimeout(ctx, readyTimeout)
	defer cancelWait()
	if err := nodes.WaitReady(wait); err != nil {
		return err
	}
	fmt.Fprintf(s.options.Log, "%d simulated nodes\n", len(s.options.Machines))
	return nil
}

// run starts one component and waits until it is ready.
func (s *Sandbox) run(ctx context.Context, name string, spec func() (process.Spec, error)) error {
	start := time.Now()
	sp, err := spec()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p, err := process.Start(sp)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.procs[name] = p
	s.mu.Unlock()
	if err := s.probe.wait(ctx, p, s.url(name)); err != nil {
		return err
	}
	fmt.Fprintf(s.options.Log, "%-24s ready in %s\n", name, time.Since(start).Round(100*time.Millisecond))
	return nil
}

// URL returns the API server's address, RESTConfig the administrator's configuration, Kubeconfig the
// path of the administrator's kubeconfig, Layout the data folder.
func (s *Sandbox) URL() string              { return s.url(APIServer) }
func (s *Sandbox) RESTConfig() *rest.Config { return rest.CopyConfig(s.admin) }
func (s *Sandbox) Kubeconfig() string       { return s.layout.Kubeconfig() }
func (s *Sandbox) Layout() Layout           { return s.layout }

// Nodes returns the simulated nodes; more can be added while the sandbox runs.
func (s *Sandbox) Nodes() *simnode.Manager { return s.nodes }

// Kill ends a component as a crash would.
func (s *Sandbox) Kill(name string) error {
	s.mu.Lock()
	p := s.procs[name]
	s.mu.Unlock()
	if p == nil {
		return fmt.Errorf("component %s is not part of this sandbox", name)
	}
	p.Kill()
	<-p.Done()
	return nil
}

// Restart ends a component, if it still runs, starts it again and waits until it is ready.
func (s *Sandbox) Restart(ctx context.Context, name string) error {
	specs := map[string]func() (process.Spec, error){
		Etcd: s.etcdSpec, APIServer: s.apiServerSpec, ControllerManager: s.controllerManagerSpec,
		StockScheduler: s.stockSchedulerSpec, GCUScheduler: s.gcuSchedulerSpec,
		Prometheus: s.prometheusSpec,
	}
	if err := s.Kill(name); err != nil {
		return err
	}
	return s.run(ctx, name, specs[name])
}

// Exited returns a channel that gets the error of each component that ends while the sandbox runs.
func (s *Sandbox) Exited() <-chan error {
	out := make(chan error, len(Components()))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.procs {
		go func() {
			<-p.Done()
			s.mu.Lock()
			stopped := s.stopped
			s.mu.Unlock()
			if !stopped {
				out <- p.Err()
			}
		}()
	}
	return out
}

// Stop ends all parts, the last started first, and gives the data folder free. The data stays.
func (s *Sandbox) Stop() {
	s.mu.Lock()
	already := s.stopped
	s.stopped = true
	s.mu.Unlock()
	if already {
		return
	}
	s.halt()
	s.close()
}

// halt ends the child processes and nodes.
func (s *Sandbox) halt() {
	if s.stopPrograms != nil {
		s.stopPrograms()
		s.stopPrograms = nil
	}
	if s.stopNodes != nil {
		s.stopNodes()
		s.stopNodes = nil
	}
	s.mu.Lock()
	procs := s.procs
	s.procs = map[string]*process.Process{}
	s.mu.Unlock()
	ctx := context.Background()
	var wg sync.WaitGroup
	for _, name := range []string{ControllerManager, StockScheduler, GCUScheduler} {
		if p := procs[name]; p != nil {
			wg.Go(func() { p.Stop(ctx, stopGrace) })
		}
	}
	wg.Wait()
	for _, name := range []string{APIServer, Etcd} {
		if p := procs[name]; p != nil {
			p.Stop(ctx, stopGrace)
		}
	}
}

func (s *Sandbox) close() {
	_ = os.Remove(s.layout.PIDFile(Supervisor))
	_ = s.lock.Close()
}

// reapComponents ends the components that pid files still name, in stopping order, and returns how
// many there were.
func reapComponents(ctx context.Context, l Layout) (int, error) {
	names := Components()
	slices.Reverse(names)
	ended := 0
	var errs []error
	for _, name := range names {
		one, err := process.Reap(ctx, l.PIDFile(name), stopGrace)
		if one {
			ended++
		}
		errs = append(errs, err)
	}
	return ended, errors.Join(errs...)
}
