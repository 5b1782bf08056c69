package processes

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// kernelThread is the kernel's mark of its own threads, PF_KTHREAD.
const kernelThread = 0x00200000

// tick is the unit of times in /proc/<pid>/stat. The kernel's interface has 100 in a second, whatever it uses itself.
const tick = 10 * time.Millisecond

// stat is what is read of /proc/<pid>/stat.
type stat struct {
	name   string
	parent int
	flags  uint64
	// started is when the process started, since boot.
	started time.Duration
}

// parseStat reads /proc/<pid>/stat. The name, which the process chose, stands in parentheses and may have some itself.
func parseStat(text string) (stat, error) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return stat{}, fmt.Errorf("stat %.80q: want a name in parentheses", text)
	}
	// From the third field on: state parent … flags (9) … start time (22)
	fields := strings.Fields(text[end+1:])
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("stat %.80q: %d fields behind the name, want 20 or more", text, len(fields))
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return stat{}, fmt.Errorf("stat %.80q: parent %q: want a number", text, fields[1])
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	if err != nil {
		return stat{}, fmt.Errorf("stat %.80q: flags %q: want a number", text, fields[6])
	}
	// 39 bits of ticks are 174 years, the most that a Duration holds.
	ticks, err := strconv.ParseUint(fields[19], 10, 39)
	if err != nil {
		return stat{}, fmt.Errorf("stat %.80q: start time %q: want a number", text, fields[19])
	}
	return stat{strings.ToValidUTF8(text[open+1:end], "?"), parent, flags, time.Duration(ticks) * tick}, nil
}

// parseUptime reads /proc/uptime: seconds since boot, and something else.
func parseUptime(text string) (time.Duration, error) {
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil || !(seconds >= 0 && seconds < 1e9) {
		return 0, fmt.Errorf("uptime %.80q: want seconds", text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
