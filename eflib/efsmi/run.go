package efsmi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/topscloud/topscloud/eflib"
)

// Runner runs the tool with arguments and returns what it printed.
type Runner func(ctx context.Context, args ...string) ([]byte, error)

const (
	// maxOutput is far more than 128 cards print.
	maxOutput = 4 << 20
	// killDelay is how long the tool's pipes may stay open after it was killed.
	killDelay = time.Second
)

// Find returns the path of the tool, looked for below a host's root and then in PATH.
func Find(hostRoot string) (string, error) {
	if hostRoot != "" && hostRoot != "/" {
		path := filepath.Join(hostRoot, "usr/bin/efsmi")
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	path, err := exec.LookPath("efsmi")
	if err != nil {
		return "", fmt.Errorf("%w: %w", eflib.ErrNotSupported, err)
	}
	return path, nil
}

// Command returns a runner of the tool at a path.
func Command(path string) Runner {
	return func(ctx context.Context, args ...string) ([]byte, error) {
		out := &limited{left: maxOutput}
		complaint := &limited{left: 4 << 10}
		cmd := exec.CommandContext(ctx, path, args...)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, complaint, killDelay
		err := cmd.Run()
		name := strings.Join(append([]string{"efsmi"}, args...), " ")
		switch {
		case eflib.ContextError(ctx) != nil:
			return nil, fmt.Errorf("%s: %w", name, eflib.ContextError(ctx))
		case out.left < 0:
			return nil, fmt.Errorf("%s: printed more than %d bytes", name, maxOutput)
		case err != nil && complaint.buffer.Len() > 0:
			return nil, fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(complaint.buffer.Bytes()))
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return out.buffer.Bytes(), nil
	}
}

var errTooMuch = errors.New("too much output")

// limited is a buffer that ends the command when it is full.
type limited struct {
	buffer bytes.Buffer
	left   int
}

func (l *limited) Write(p []byte) (int, error) {
	l.left -= len(p)
	if l.left < 0 {
		return 0, errTooMuch
	}
	return l.buffer.Write(p)
}
