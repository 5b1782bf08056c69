package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/topscloud/topscloud/sandbox/process"
)

// supervisorGrace is how long a supervisor may take to end all its parts in order.
const supervisorGrace = 45 * time.Second

// Down ends the sandbox of a data folder, whoever started it: the supervisor first, in the orderly
// way, then whatever a pid file still names, which is something only after a crash. It returns how
// many processes it had to end. A folder where nothing runs is no error.
func Down(ctx context.Context, dir string) (int, error) {
	l := Layout{dir}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("sandbox %s: no such data folder", dir)
	}
	ended := 0
	stopped, err := process.Reap(ctx, l.PIDFile(Supervisor), supervisorGrace)
	if stopped {
		ended++
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ended, err
	}
	n, err := reapComponents(ctx, l)
	return ended + n, err
}

// Row is one line of a sandbox's status.
type Row struct {
	Component string
	PID       int
	// State is running, exited (it should run and does not), stopped, or off (not part of it).
	State string
	URL   string
}

// Status describes the sandbox of a data folder from its files alone.
func Status(dir string) ([]Row, error) {
	l := Layout{dir}
	state, err := l.ReadState()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("sandbox %s: no sandbox in this data folder", dir)
	}
	if err != nil {
		return nil, err
	}
	up := false
	var rows []Row
	for _, name := range append([]string{Supervisor}, Components()...) {
		row := Row{Component: name, State: "stopped"}
		r, err := process.ReadRecord(l.PIDFile(name))
		_, on := state.Ports[name]
		switch {
		case name != Supervisor && !on:
			row.State = "off"
		case err == nil && r.Alive():
			row.State, row.PID = "running", r.PID
		case up:
			row.State = "exited"
		}
		if name == Supervisor {
			up = row.State == "running"
		} else if row.State == "running" {
			row.URL = urlOf(name, state.Ports[name])
		}
		rows = append(rows, row)
	}
	exporters := state.Exporters()
	for _, node := range slices.Sorted(maps.Keys(exporters)) {
		row := Row{Component: exporterListener + node, State: "stopped"}
		if up { // they are part of the supervisor
			row.State, row.PID, row.URL = "running", rows[0].PID, exporters[node]
		}
		rows = append(rows, row)
	}
	return rows, nil
}
