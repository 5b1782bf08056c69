package sandbox

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports come from below the range that Linux gives to outgoing connections (32768 and up), so that a
// port found free is not taken by a client a moment later.
const (
	firstPort = 20000
	lastPort  = 31999
)

// choosePorts gives every listener a port: its former one if that is free, else another.
func choosePorts(former map[string]int, listeners []string) (map[string]int, error) {
	out := make(map[string]int, len(listeners))
	taken := make(map[int]bool, len(listeners))
	for _, l := range listeners {
		if p := former[l]; p > 0 && !taken[p] && portFree(p) {
			out[l], taken[p] = p, true
		}
	}
	for _, l := range listeners {
		for tries := 0; out[l] == 0; tries++ {
			if tries == 1000 {
				return nil, fmt.Errorf("no free port between %d and %d for %s", firstPort, lastPort, l)
			}
			p := firstPort + rand.IntN(lastPort-firstPort+1)
			if !taken[p] && portFree(p) {
				out[l], taken[p] = p, true
			}
		}
	}
	return out, nil
}

func portFree(port int) bool {
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return ln.Close() == nil
}
