package nodebook

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// Serve serves a publisher's books on a socket until ctx ends. The socket takes the place of an older agent's in
// one step. It is left behind at the end: by then it may be a newer agent's, and one that nobody listens on refuses
// at once.
func Serve(ctx context.Context, path, instance string, p *Publisher) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make folder of the book's socket: %w", err)
	}
	own := path + "." + instance
	if err := os.Remove(own); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an old socket: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: own, Net: "unix"})
	if err != nil {
		return fmt.Errorf("serve the node's book: %w", err)
	}
	listener.SetUnlinkOnClose(false) // its name is another by then
	defer listener.Close()
	if err := errors.Join(os.Chmod(own, 0o660), os.Rename(own, path)); err != nil {
		return errors.Join(fmt.Errorf("serve the node's book: %w", err), os.Remove(own))
	}
	server := &http.Server{
		Handler: p.Handler(), ReadHeaderTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the node's book: %w", err)
	}
	return nil
}
