package process_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/topscloud/topscloud/sandbox/process"
)

func spec(t *testing.T, script string) process.Spec {
	t.Helper()
	dir := t.TempDir()
	return process.Spec{
		Name: "test", Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir,
		LogFile: filepath.Join(dir, "log"), PIDFile: filepath.Join(dir, "pid"),
	}
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	s := spec(t, "sleep 1000 & echo $!; wait")
	p, err := process.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := process.ReadRecord(s.PIDFile)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Alive() {
		t.Error("the record of a running process is not alive")
	}
	p.Stop(t.Context(), 5*time.Second)
	if r.Alive() {
		t.Error("alive after Stop")
	}
	if _, err := os.Stat(s.PIDFile); err == nil {
		t.Error("the pid file is still there")
	}
}

func TestStopKillsWhatIgnoresTerm(t *testing.T) {
	t.Parallel()
	s := spec(t, "trap '' TERM; echo on; while :; do sleep 0.1; done")
	p, err := process.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	p.Stop(t.Context(), 200*time.Millisecond)
	select {
	case <-p.Done():
	default:
		t.Error("not done after Stop")
	}
}

// A pid file of an earlier life of the pid must not end the process that has it now.
func TestReapLeavesStrangersAlone(t *testing.T) {
	t.Parallel()
	stranger := exec.Command("/bin/sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	self, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pid")
	old := process.Record{PID: stranger.Process.Pid, Start: self.Start - 1, Boot: self.Boot}
	if err := old.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	ended, err := process.Reap(t.Context(), file, time.Second)
	if err != nil || ended {
		t.Errorf("got %v, %v: want nothing ended", ended, err)
	}
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the stranger is gone: %v", err)
	}
}

func TestReapEndsWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := spec(t, "exec sleep 1000")
	p, err := process.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	ended, err := process.Reap(context.Background(), s.PIDFile, 5*time.Second)
	if err != nil || !ended {
		t.Errorf("got %v, %v: want one ended", ended, err)
	}
	<-p.Done()
	if ended, err := process.Reap(context.Background(), s.PIDFile, time.Second); ended || err != nil {
		t.Errorf("a second time: got %v, %v", ended, err)
	}
}
