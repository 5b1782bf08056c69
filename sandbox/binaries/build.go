package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Options of Ensure. The zero value uses the user's cache and finds the source by itself.
type Options struct {
	// CacheRoot replaces the folder CacheRoot returns.
	CacheRoot string
	// Source is the root of the source tree; empty means FindSource.
	Source string
	// Log gets the progress lines; nil drops them.
	Log io.Writer
}

// Ensure returns the binaries, building those the cache lacks.
func Ensure(ctx context.Context, o Options) (Set, error) {
	dir, err := ensure(ctx, o, current())
	return Set{dir: dir}, err
}

// EnsureOldest returns a set whose API server and controller manager are of the oldest release that
// gcu-scheduler supports.
func EnsureOldest(ctx context.Context, o Options) (Set, error) {
	set, err := Ensure(ctx, o)
	if err != nil {
		return Set{}, err
	}
	set.older, err = ensure(ctx, o, oldest())
	return set, err
}

// EnsureNode returns a set that has kubelet and the container engine as well.
func EnsureNode(ctx context.Context, o Options) (Set, error) {
	set, err := Ensure(ctx, o)
	if err != nil {
		return Set{}, err
	}
	if _, err := ensure(ctx, o, kubelet()); err != nil {
		return Set{}, err
	}
	set.engine, err = ensure(ctx, o, engine())
	return set, err
}

// EnsurePrometheus returns the folder of prometheus and promtool.
func EnsurePrometheus(ctx context.Context, o Options) (string, error) {
	return ensure(ctx, o, monitoring())
}

// ensure fills the cache folder of a release and returns it.
func ensure(ctx context.Context, o Options, r release) (string, error) {
	root := o.CacheRoot
	if root == "" {
		var err error
		if root, err = CacheRoot(); err != nil {
			return "", err
		}
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	dir := filepath.Join(root, r.key)
	todo, err := missing(dir, r.targets)
	if err != nil {
		return "", err
	}
	if len(todo) == 0 {
		return dir, nil
	}
	if o.Source == "" {
		found, ok := FindSource()
		if !ok {
			return "", fmt.Errorf("%s lacks %s and the source tree (hack) is not above the working directory: run from a clone, or name it", dir, todo[0].name)
		}
		o.Source = found
	}
	gotool, err := exec.LookPath("go")
	if err != nil {
		return "", fmt.Errorf("%s lacks %s, and building it needs Go: %w", dir, todo[0].name, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, dir+".lock", o.Log)
	if err != nil {
		return "", err
	}
	defer unlock()
	// The builder that held the lock may have done our work.
	if todo, err = missing(dir, r.targets); err != nil {
		return "", err
	}
	for i, t := range todo {
		if err := build(ctx, gotool, o.Source, o.Log, r, dir, t, fmt.Sprintf("%d of %d", i+1, len(todo))); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// build makes one binary. Its output lands beside the final name first, so a half-written file never
// has the name others look for.
func build(ctx context.Context, gotool, source string, log io.Writer, r release, dir string, t target, nth string) error {
	tmp := filepath.Join(dir, fmt.Sprintf(".%s-%d", t.name, os.Getpid()))
	defer os.Remove(tmp)
	cmd := exec.CommandContext(ctx, gotool, append(append([]string{"build"}, r.flags...), "-o", tmp, t.pkg)...)
	cmd.Dir = filepath.Join(source, r.module)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output

	start := time.Now()
	fmt.Fprintf(log, "building %s %s (%s) from the modules in %s; the first build takes minutes\n", t.name, r.version, nth, r.module)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build %s: %w", t.name, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	every := 15 * time.Second
	if isTerminal(log) {
		every = 5 * time.Second
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprintf(log, "  %s (%s): %s\n", t.name, nth, time.Since(start).Round(time.Second))
			continue
		case err := <-done:
			if ctx.Err() != nil {
				return fmt.Errorf("build %s: %w", t.name, context.Cause(ctx))
			}
			if err != nil {
				return fmt.Errorf("build %s: %w\n%s", t.name, err, bytes.TrimSpace(output.Bytes()))
			}
		}
		break
	}
	fmt.Fprintf(log, "built %s in %s\n", t.name, time.Since(start).Round(time.Second))
	return os.Rename(tmp, filepath.Join(dir, t.name))
}

// lock takes the file lock of a cache folder, saying so when it has to wait for another builder. The
// kernel drops the lock when the holder dies.
func lock(ctx context.Context, path string, log io.Writer) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for said := false; ; said = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !said {
			fmt.Fprintln(log, "waiting for another process that builds the same binaries")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		}
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
