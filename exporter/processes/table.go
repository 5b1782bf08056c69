package processes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/topscloud/topscloud/eflib"
)

// Process is a process that holds memory of a card.
type Process struct {
	PID int
	// Name is what the process calls itself; empty where it is gone.
	Name string
	// PodUID is that of the pod it belongs to; empty where it belongs to none.
	PodUID      string
	DeviceBytes int64
}

// Table is the processes of a host.
type Table struct {
	proc    string
	visible error
}

// ErrNotTheHosts means that the processes that can be seen are not the host's: hostPID is not set.
var ErrNotTheHosts = errors.New("the host's processes cannot be seen")

// Open returns the processes of the host below root. Whether they are the host's is settled here, for good: neither a
// process's namespace nor what is mounted in it changes while it runs.
func Open(root string) *Table {
	t := &Table{proc: filepath.Join("/", root, "proc")}
	switch text, err := os.ReadFile(filepath.Join(t.proc, "2/stat")); {
	case err != nil:
		t.visible = fmt.Errorf("%w: %w", ErrNotTheHosts, err)
	default:
		daemon, err := parseStat(string(text))
		if err != nil {
			t.visible = fmt.Errorf("%w: %w", ErrNotTheHosts, err)
		} else if daemon.flags&kernelThread == 0 || daemon.parent != 0 {
			t.visible = fmt.Errorf("%w: process 2 in %s is %q", ErrNotTheHosts, t.proc, daemon.name)
		}
	}
	return t
}

// Visible returns nil where the host's processes can be seen, else why they cannot.
func (t *Table) Visible() error { return t.visible }

// Look finds out about processes that a card told of when it was asked, which began at asked.
func (t *Table) Look(list []eflib.Process, asked time.Time) ([]Process, error) {
	if t.visible != nil || len(list) == 0 {
		return nil, t.visible
	}
	text, err := os.ReadFile(filepath.Join(t.proc, "uptime"))
	if err != nil {
		return nil, err
	}
	uptime, err := parseUptime(string(text))
	if err != nil {
		return nil, err
	}
	// Both clocks are read at one time, so this is when the card was asked, since boot.
	latest := uptime - time.Since(asked)
	out := make([]Process, 0, len(list))
	for _, p := range list {
		// A driver may tell a process once for each of its contexts.
		if i := slices.IndexFunc(out, func(o Process) bool { return o.PID == p.PID }); i >= 0 {
			out[i].DeviceBytes += p.DeviceBytes
			continue
		}
		found, err := t.one(p, latest)
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", p.PID, err)
		}
		out = append(out, found)
	}
	return out, nil
}

// one reads a process. It was there when the card was asked, so it started by then; one that started later has taken
// its number. The start is read before and after the group, so that both are of one process.
func (t *Table) one(p eflib.Process, latest time.Duration) (Process, error) {
	unknown := Process{PID: p.PID, DeviceBytes: p.DeviceBytes}
	dir := filepath.Join(t.proc, strconv.Itoa(p.PID))
	before, err := readStat(dir)
	if gone(err) {
		return unknown, nil
	} else if err != nil {
		return Process{}, err
	}
	if before.started > latest+tick {
		return unknown, nil
	}
	group, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if gone(err) {
		return unknown, nil
	} else if err != nil {
		return Process{}, err
	}
	after, err := readStat(dir)
	if gone(err) || err == nil && after.started != before.started {
		return unknown, nil
	} else if err != nil {
		return Process{}, err
	}
	return Process{PID: p.PID, Name: after.name, PodUID: PodOf(string(group)), DeviceBytes: p.DeviceBytes}, nil
}

func readStat(dir string) (stat, error) {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(text))
}

// gone says whether an error means that a process has ended: its files are gone, or cannot be read to their end.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }
