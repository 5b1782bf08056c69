package sandbox

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
)

// Ports come from below the range that Linux gives to outgoing connections (32768 and up), so that a
// port found free is not taken by a client a moment later.
const (
	firstPort = 20000
	lastPort  = 31999
)

// exporterListener starts the name of an exporter's listener; the node's name follows.
const exporterListener = "gcu-exporter/"

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
		if out[l] != 0 {
			continue
		}
		p, err := choosePort(taken)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l, err)
		}
		out[l], taken[p] = p, true
	}
	return out, nil
}

// choosePort returns a free port that is not taken.
func choosePort(taken map[int]bool) (int, error) {
	for range 1000 {
		p := firstPort + rand.IntN(lastPort-firstPort+1)
		if !taken[p] && portFree(p) {
			return p, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}

func portFree(port int) bool {
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return ln.Close() == nil
}

func (s *Sandbox) port(listener string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ports[listener]
}

// exporterAddress returns where the exporter of a node serves. A node that is added to a running sandbox gets its port
// now.
func (s *Sandbox) exporterAddress(node string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	listener := exporterListener + node
	if s.ports[listener] == 0 {
		taken := map[int]bool{}
		for _, p := range s.ports {
			taken[p] = true
		}
		p, err := choosePort(taken)
		if err != nil {
			return "", fmt.Errorf("%s: %w", listener, err)
		}
		state, err := s.layout.ReadState()
		if err != nil {
			return "", err
		}
		// The map is replaced, not changed: State may have been handed out.
		ports := maps.Clone(s.ports)
		ports[listener] = p
		state.Ports = ports
		if err := s.layout.writeState(state); err != nil {
			return "", err
		}
		s.ports = ports
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.ports[listener])), nil
}

// Exporters returns the addresses of the exporters' metrics, by node.
func (s State) Exporters() map[string]string {
	out := map[string]string{}
	for listener, port := range s.Ports {
		if node, ok := strings.CutPrefix(listener, exporterListener); ok {
			out[node] = fmt.Sprintf("http://127.0.0.1:%d/metrics", port)
		}
	}
	return out
}
