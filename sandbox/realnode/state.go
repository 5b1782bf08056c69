package realnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// statePath is the file on the machine that says what a node has made. It is there while a node runs, and
// after one that was killed.
const statePath = "/var/lib/topscloud-realnode.json"

// lockName is an abstract socket: it is free again when its holder dies, and leaves no file.
const lockName = "@topscloud-realnode"

const stateVersion = "v1"

// state is what a node has outside its folder, and its folder. It is written before anything in it is made.
type state struct {
	Version string `json:"version"`
	Dir     string `json:"dir"`
	Cgroup  string `json:"cgroup"`
	// Bridge is the network interface, Network the name in CNI's files.
	Bridge  string `json:"bridge"`
	Network string `json:"network"`
	// Sysctls are the values kubelet is about to change, by file.
	Sysctls map[string]string `json:"sysctls"`
	// Made are folders outside Dir that were not there, parents first. They go when they are empty.
	Made []string `json:"made"`
	// Kept is where the device-plugins folder that was there waits.
	Kept string `json:"kept,omitempty"`
}

func readState() (*state, error) {
	text, err := os.ReadFile(statePath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("read %s: %w", statePath, err)
	}
	if s.Version != stateVersion || !filepath.IsAbs(s.Dir) || len(s.Cgroup) < 2 || s.Bridge == "" || s.Network == "" {
		return nil, fmt.Errorf("read %s: not written by this release; see what it names, take that away by hand, and remove the file", statePath)
	}
	return &s, nil
}

func (s *state) write() error {
	s.Version = stateVersion
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	tmp := statePath + ".tmp"
	if err := os.WriteFile(tmp, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, statePath)
}

// newState looks at the machine and says what a node in dir is going to make.
func newState(dir, key string) (*state, error) {
	s := &state{Dir: dir, Cgroup: "/topscloud-" + key, Bridge: "tcn" + key, Network: "topscloud-" + key, Sysctls: map[string]string{}}
	for _, path := range []string{
		"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
	} {
		path = filepath.Join("/proc/sys", path)
		text, err := os.ReadFile(path)
		if err != nil {
			continue // kubelet cannot change what is not there
		}
		s.Sysctls[path] = strings.TrimSpace(string(text))
	}
	for _, path := range []string{kubeletDir, pluginDir, containerLogs, filepath.Dir(shimSockets), shimSockets, filepath.Dir(cniResults), cniResults, "/run/netns"} {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			s.Made = append(s.Made, path)
		} else if path == pluginDir {
			s.Kept = pluginDir + ".topscloud-" + key
		}
	}
	return s, nil
}

// lockMachine waits until no other node of ours runs on the machine.
func lockMachine(ctx context.Context, log io.Writer) (io.Closer, error) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for said := false; ; said = true {
		l, err := net.Listen("unix", lockName)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("lock the machine: %w", err)
		}
		if !said {
			fmt.Fprintln(log, "waiting for another real node on this machine")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("another real node runs on this machine: %w", context.Cause(ctx))
		}
	}
}
