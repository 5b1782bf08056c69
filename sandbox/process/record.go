package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Record identifies one process beyond its pid, which the kernel uses again.
type Record struct {
	PID int `json:"pid"`
	// Start is the start time in clock ticks after the boot.
	Start uint64 `json:"start"`
	// Boot is the kernel's id of the boot.
	Boot string `json:"boot"`
}

// Self returns the record of the calling process.
func Self() (Record, error) { return record(os.Getpid()) }

func record(pid int) (Record, error) {
	start, _, err := stat(pid)
	if err != nil {
		return Record{}, err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Record{}, err
	}
	return Record{PID: pid, Start: start, Boot: strings.TrimSpace(string(boot))}, nil
}

// stat returns the start time and state letter of a process.
func stat(pid int) (start uint64, state byte, err error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, err
	}
	// The command name stands in brackets and may hold anything, so fields count from the last one.
	i := bytes.LastIndexByte(b, ')')
	fields := strings.Fields(string(b[i+1:]))
	if i < 0 || len(fields) < 20 {
		return 0, 0, fmt.Errorf("%s: unexpected content", path)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: start time: %w", path, err)
	}
	return start, fields[0][0], nil
}

// Alive reports whether the process of the record still runs. A zombie does not.
func (r Record) Alive() bool {
	if r.PID <= 0 {
		return false
	}
	now, err := record(r.PID)
	if err != nil || now != r {
		return false
	}
	_, state, err := stat(r.PID)
	return err == nil && state != 'Z' && state != 'X'
}

// ReadRecord reads a pid file. A missing file is fs.ErrNotExist.
func ReadRecord(path string) (Record, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Record{}, err
	}
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return Record{}, fmt.Errorf("read %s: %w", path, err)
	}
	return r, nil
}

// WriteFile writes r as a pid file.
func (r Record) WriteFile(path string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// Reap ends the process a pid file names, if it still runs, and removes the file: SIGTERM first, and
// SIGKILL when grace is over. It returns whether there was something to end.
func Reap(ctx context.Context, path string, grace time.Duration) (bool, error) {
	r, err := ReadRecord(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ended, err := r.end(ctx, grace)
	if err != nil {
		return ended, fmt.Errorf("end process %d of %s: %w", r.PID, path, err)
	}
	// A process that ends in order may have removed its file already.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ended, err
	}
	return ended, nil
}

func (r Record) end(ctx context.Context, grace time.Duration) (bool, error) {
	// The descriptor pins the process: between the check and the signal the pid cannot change hands.
	fd, err := unix.PidfdOpen(r.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	if !r.Alive() {
		return false, nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return false, err
	}
	limit := time.NewTimer(grace)
	defer limit.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for r.Alive() {
		select {
		case <-poll.C:
		case <-limit.C:
			if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
				return false, err
			}
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return true, nil
}
