package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/topscloud/topscloud/sandbox/simnode"
)

// Component names, in the order in which they start.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	StockScheduler    = "kube-scheduler"
	GCUScheduler      = "gcu-scheduler"
	Prometheus        = "prometheus"
	// Supervisor is the process that holds the sandbox and its simulated nodes.
	Supervisor = "supervisor"
)

// Components lists the child processes in starting order.
func Components() []string {
	return []string{Etcd, APIServer, ControllerManager, StockScheduler, GCUScheduler, Prometheus}
}

// Layout is the data folder:
//
//	kubeconfig      administrator's access
//	state.json      ports and machines, read at resume and by status
//	lock            held by the supervisor
//	run/*.pid       process records
//	logs/*.log      one per component
//	pki/ config/ etcd/
type Layout struct{ Dir string }

// Kubeconfig, PIDFile, LogFile and Config return paths within the folder.
func (l Layout) Kubeconfig() string         { return filepath.Join(l.Dir, "kubeconfig") }
func (l Layout) PIDFile(name string) string { return filepath.Join(l.Dir, "run", name+".pid") }
func (l Layout) LogFile(name string) string { return filepath.Join(l.Dir, "logs", name+".log") }
func (l Layout) Config(file string) string  { return filepath.Join(l.Dir, "config", file) }

func (l Layout) lockFile() string  { return filepath.Join(l.Dir, "lock") }
func (l Layout) stateFile() string { return filepath.Join(l.Dir, "state.json") }
func (l Layout) pki() string       { return filepath.Join(l.Dir, "pki") }
func (l Layout) etcd() string      { return filepath.Join(l.Dir, "etcd") }

// LoggedComponents lists the components that have a log.
func (l Layout) LoggedComponents() []string {
	var out []string
	for _, name := range append(Components(), Supervisor) {
		if _, err := os.Stat(l.LogFile(name)); err == nil {
			out = append(out, name)
		}
	}
	return out
}

func (l Layout) create() error {
	for _, dir := range []string{"run", "logs", "pki", "config"} {
		if err := os.MkdirAll(filepath.Join(l.Dir, dir), 0o700); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
	}
	return nil
}

// State is what a data folder remembers between runs.
type State struct {
	Version string `json:"version"`
	// Ports maps a listener (a component, or gcu-exporter/<node>) to its port.
	Ports map[string]int `json:"ports"`
	// Machines are the nodes, as <name>=<preset>.
	Machines []string `json:"machines,omitempty"`
}

const stateVersion = "v1"

// ParseMachines returns the machines of the state.
func (s State) ParseMachines() ([]simnode.Machine, error) {
	out := make([]simnode.Machine, 0, len(s.Machines))
	for _, text := range s.Machines {
		name, preset, _ := strings.Cut(text, "=")
		m, err := simnode.NewMachine(preset, name)
		if err != nil {
			return nil, fmt.Errorf("machine %q of the data folder: %w", text, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// without returns the names of the state's machines that are not in the list.
func (s State) without(machines []simnode.Machine) []string {
	var out []string
	for _, text := range s.Machines {
		name, _, _ := strings.Cut(text, "=")
		if !slices.ContainsFunc(machines, func(m simnode.Machine) bool { return m.Name == name }) {
			out = append(out, name)
		}
	}
	return out
}

// OpenSupervisorLog opens the log of a detached supervisor, making the folder if need be.
func (l Layout) OpenSupervisorLog() (*os.File, error) {
	if err := l.create(); err != nil {
		return nil, err
	}
	return os.OpenFile(l.LogFile(Supervisor), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

// ReadState reads the state of a data folder; a folder without one gives fs.ErrNotExist.
func (l Layout) ReadState() (State, error) {
	b, err := os.ReadFile(l.stateFile())
	if err != nil {
		return State{}, err
	}
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		return State{}, fmt.Errorf("read %s: %w", l.stateFile(), err)
	}
	if s.Version != stateVersion {
		return State{}, fmt.Errorf("read %s: version %q: this release reads %s", l.stateFile(), s.Version, stateVersion)
	}
	return s, nil
}

func (l Layout) readStateOrNew() (State, error) {
	s, err := l.ReadState()
	if errors.Is(err, fs.ErrNotExist) {
		return State{Ports: map[string]int{}}, nil
	}
	return s, err
}

func (l Layout) writeState(s State) error {
	s.Version = stateVersion
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	tmp := l.stateFile() + ".tmp"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, l.stateFile())
}
