package kubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// fileID tells one file from another that had its path before. Inodes are used again at once on some
// file systems, so the time counts too.
type fileID struct {
	device, inode uint64
	made          time.Time
}

// identify returns the identity of the socket at path, false if there is none.
func identify(path string) (fileID, bool) {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return fileID{}, false
	}
	return fileID{device: uint64(s.Dev), inode: s.Ino, made: time.Unix(s.Mtim.Unix())}, true
}

// socket is a listening socket and the file it made.
type socket struct {
	net.Listener
	path string
	id   fileID
}

// listen makes a socket at a path where there is nothing yet.
func listen(path string) (*socket, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// By default closing removes whatever is at the path by then.
	l.SetUnlinkOnClose(false)
	id, ok := identify(path)
	if !ok {
		return nil, errors.Join(fmt.Errorf("listen on %s: the socket vanished at once", path), l.Close())
	}
	return &socket{Listener: l, path: path, id: id}, nil
}

// remove deletes the socket's file unless somebody else's is at its path.
func (s *socket) remove() error {
	if id, ok := identify(s.path); !ok || id != s.id {
		return nil
	}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove socket: %w", err)
	}
	return nil
}
