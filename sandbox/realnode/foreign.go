package realnode

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// refuseForeign returns an error when another kubelet owns the machine. Ours is not running when it is called.
func refuseForeign() error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// Readable by root for every process; kernel threads have none.
		exe, err := os.Readlink(filepath.Join("/proc", e.Name(), "exe"))
		if err == nil && filepath.Base(exe) == "kubelet" {
			return fmt.Errorf("kubelet runs on this machine, pid %d (%s): there can be one, since %s cannot be moved", pid, exe, pluginDir)
		}
	}
	socket := filepath.Join(pluginDir, "kubelet.sock")
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err == nil {
		conn.Close()
		return fmt.Errorf("%s answers: a kubelet that cannot be seen from here owns this machine", socket)
	}
	return nil
}
