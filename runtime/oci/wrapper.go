package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/topscloud/topscloud/eflib/sysfs"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/runtime/bundle"
	"github.com/topscloud/topscloud/runtime/host"
	"github.com/topscloud/topscloud/runtime/modifier"
	"github.com/topscloud/topscloud/runtime/settings"
)

// Wrapper is one call of enflame-container-runtime.
type Wrapper struct {
	// Args and Env are those of the process; Args[0] is the program.
	Args, Env []string
	// Stderr gets the reason of a failure.
	Stderr io.Writer
	// Exec becomes another program; syscall.Exec where it is nil. It returns only when that fails.
	Exec func(path string, args, env []string) error
	// Stat looks at the host's device nodes; host.StatNode where it is nil.
	Stat func(path string) (host.Node, error)
}

// Run does what the arguments say and returns the exit code. It returns only if something failed.
func (w *Wrapper) Run(ctx context.Context) int {
	c := parse(w.Args[1:])
	err := w.run(ctx, c)
	if err == nil {
		return 0 // only an Exec that returns comes here
	}
	fmt.Fprintf(w.Stderr, "enflame-container-runtime: %v\n", err)
	if c.log != "" {
		if err := report(c, err); err != nil {
			fmt.Fprintf(w.Stderr, "enflame-container-runtime: %v\n", err)
		}
	}
	return 1
}

func (w *Wrapper) run(ctx context.Context, c call) error {
	root := "/"
	for _, entry := range w.Env {
		if value, ok := strings.CutPrefix(entry, contract.EnvHostRoot+"="); ok && value != "" {
			root = value
		}
	}
	s, err := settings.Read(root)
	if err != nil {
		return err
	}
	path, err := lookup(s.Runtime.Runtimes, runtimeDirs)
	if err != nil {
		return err
	}
	if c.command == "create" || c.command == "run" {
		if err := w.edit(ctx, root, s, c); err != nil {
			return fmt.Errorf("container %s: %w", c.id, err)
		}
	}
	become := w.Exec
	if become == nil {
		become = syscall.Exec
	}
	if err := become(path, w.Args, w.Env); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// edit edits the spec of the bundle, if it is to be edited.
func (w *Wrapper) edit(ctx context.Context, root string, s settings.Settings, c call) error {
	dir, err := filepath.Abs(c.bundle)
	if err != nil {
		return err
	}
	text, err := bundle.Read(dir)
	if err != nil {
		return err
	}
	// The common case first: most containers have nothing to do with cards.
	if !bytes.Contains(text, []byte(contract.EnvVisibleDevices)) {
		return nil
	}
	files, err := host.ReadFiles(root)
	if err != nil {
		return err
	}
	m := modifier.Modifier{Settings: s.Runtime,
		Host: &host.Host{Root: root, Files: files, Cards: sysfs.New(os.DirFS(root)), Stat: w.Stat}}
	edited, outcome, err := m.Apply(ctx, dir, text)
	if logErr := debug(s.DebugFile(), c, outcome, err); logErr != nil {
		fmt.Fprintf(w.Stderr, "enflame-container-runtime: %v\n", logErr) // no reason not to start a container
	}
	if err != nil || !outcome.Changed {
		return err
	}
	return bundle.Replace(dir, edited)
}

// debug writes what was decided to the log, if there is one.
func debug(path string, c call, o modifier.Outcome, failure error) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(file, nil)).With("container", c.id, "asked", o.Asked, "reason", o.Reason)
	switch {
	case failure != nil:
		log.Error("Container is refused", "error", failure)
	case o.Changed:
		log.Info("Container gets cards", "cards", o.Cards)
	default:
		log.Info("Container is left alone")
	}
	if o.LeftOut != nil {
		log.Warn("Cards cannot be looked at", "error", o.LeftOut)
	}
	return file.Close()
}

// report writes a failure where the engine looks for the reason, in the form it has asked for.
func report(c call, failure error) error {
	line := "enflame-container-runtime: " + failure.Error()
	if c.style == "json" {
		text, err := json.Marshal(map[string]string{"level": "error", "msg": line, "time": time.Now().UTC().Format(time.RFC3339)})
		if err != nil {
			return err
		}
		line = string(text)
	} else {
		line = fmt.Sprintf("time=%q level=error msg=%q", time.Now().UTC().Format(time.RFC3339), line)
	}
	file, err := os.OpenFile(c.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, line)
	return errors.Join(err, file.Close())
}
