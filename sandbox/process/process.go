package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	// Name is the component's name, for messages.
	Name string
	// Path is the executable, Args its arguments without the name.
	Path string
	Args []string
	// Dir is the working folder.
	Dir string
	// Env are variables that go over those of the calling process, as name=value.
	Env []string
	// LogFile gets both outputs, appended. PIDFile gets the Record.
	LogFile, PIDFile string
}

// Process is a running or ended child.
type Process struct {
	spec   Spec
	record Record
	cmd    *exec.Cmd
	done   chan struct{}

	// mu guards waited and err, and keeps signals from reaching a pid that was already given back.
	mu     sync.Mutex
	waited bool
	err    error
}

// maxLogBytes is the size above which a log is moved aside at the next start.
const maxLogBytes = 32 << 20

// Start starts a child.
func Start(spec Spec) (*Process, error) {
	if info, err := os.Stat(spec.LogFile); err == nil && info.Size() > maxLogBytes {
		if err := os.Rename(spec.LogFile, spec.LogFile+".1"); err != nil {
			return nil, err
		}
	}
	log, err := os.OpenFile(spec.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Dir = spec.Dir
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	p := &Process{spec: spec, cmd: cmd, done: make(chan struct{})}

	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread that forked ends, not the process. So this
		// goroutine keeps its thread until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.wait()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	if p.record, err = record(cmd.Process.Pid); err == nil {
		err = p.record.WriteFile(spec.PIDFile)
	}
	if err != nil {
		p.Kill()
		<-p.done
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return p, nil
}

// wait collects the child. It first waits without collecting, so that Kill and Stop, which take the
// same lock, can never signal a pid that the kernel has given to somebody else.
func (p *Process) wait() {
	waitExited(p.cmd.Process.Pid)
	p.mu.Lock()
	p.waited = true
	p.err = p.cmd.Wait()
	p.mu.Unlock()
	close(p.done)
}

// Name returns the component's name.
func (p *Process) Name() string { return p.spec.Name }

// PID returns the pid.
func (p *Process) PID() int { return p.record.PID }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended; it is meaningful after Done.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		return fmt.Errorf("%s ended by itself", p.spec.Name)
	}
	return fmt.Errorf("%s: %w", p.spec.Name, p.err)
}

func (p *Process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.waited {
		// A group that is just ending gives ESRCH, which is what was wanted.
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}

// Kill sends SIGKILL to the process group.
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

// Stop sends SIGTERM, and SIGKILL after grace or when ctx ends, and returns when the process is gone.
func (p *Process) Stop(ctx context.Context, grace time.Duration) {
	p.signal(syscall.SIGTERM)
	limit := time.NewTimer(grace)
	defer limit.Stop()
	select {
	case <-p.done:
	case <-limit.C:
	case <-ctx.Done():
	}
	p.Kill()
	<-p.done
	_ = os.Remove(p.spec.PIDFile)
}

// LogTail returns the last lines of the log, for an error message.
func (p *Process) LogTail(lines int) string {
	f, err := os.Open(p.spec.LogFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	const window = 16 << 10
	if info, err := f.Stat(); err == nil && info.Size() > window {
		if _, err := f.Seek(-window, 2); err != nil {
			return ""
		}
	}
	b := make([]byte, window)
	n, _ := f.Read(b)
	all := strings.Split(strings.TrimSpace(string(b[:n])), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
