package realnode

import (
	"errors"
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// makeBridge makes the network bridge of the node with its address, and brings it up. The kernel adds the route to
// the pods.
func makeBridge(name, address, mask string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := bridgeCall(fd, unix.SIOCBRADDBR, name); err != nil {
		return fmt.Errorf("make network bridge %s: %w", name, err)
	}
	for _, set := range []struct {
		call  uint
		value string
	}{{unix.SIOCSIFADDR, address}, {unix.SIOCSIFNETMASK, mask}} {
		req, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		if err := req.SetInet4Addr(net.ParseIP(set.value).To4()); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(fd, set.call, req); err != nil {
			return fmt.Errorf("address %s of network bridge %s: %w", set.value, name, err)
		}
	}
	return setUp(fd, name, true)
}

func bridgeCall(fd int, call uintptr, name string) error {
	text, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), call, uintptr(unsafe.Pointer(text))); errno != 0 {
		return errno
	}
	return nil
}

func setUp(fd int, name string, up bool) error {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, req); err != nil {
		return err
	}
	flags := req.Uint16() &^ unix.IFF_UP
	if up {
		flags |= unix.IFF_UP
	}
	req.SetUint16(flags)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// removeBridge takes a network bridge away; what hangs on it went with its containers' namespaces.
func removeBridge(name string) error {
	if _, err := net.InterfaceByName(name); err != nil {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// The kernel removes a bridge only when it is down.
	if err := setUp(fd, name, false); err != nil {
		return gone(name, err)
	}
	if err := bridgeCall(fd, unix.SIOCBRDELBR, name); err != nil {
		return gone(name, err)
	}
	return nil
}

func gone(name string, err error) error {
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
		return nil
	}
	return fmt.Errorf("remove network bridge %s: %w", name, err)
}
