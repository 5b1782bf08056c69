package kubelet

import (
	"slices"
	"strings"
	"sync"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Device is one ID as kubelet counts it.
type Device struct {
	ID      string
	Healthy bool
	// NUMA is the NUMA node, -1 when unknown.
	NUMA int
}

// Devices is the list of devices of a resource. It is a level: whoever watches it may miss values in
// between, never the last one. The zero value is an empty list.
type Devices struct {
	// mu guards the fields below.
	mu      sync.Mutex
	list    []Device
	changed chan struct{} // closed at the next change; nil until somebody watches
}

// Set replaces the list and reports whether that changed anything. Order does not matter.
func (d *Devices) Set(list []Device) bool {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b Device) int { return strings.Compare(a.ID, b.ID) })
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Equal(list, d.list) {
		return false
	}
	d.list = list
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
	return true
}

// Get returns the list, sorted by ID, and a channel that is closed when it is no longer the last one.
// The list must not be changed.
func (d *Devices) Get() ([]Device, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return d.list, d.changed
}

func response(list []Device) *pluginapi.ListAndWatchResponse {
	out := &pluginapi.ListAndWatchResponse{Devices: make([]*pluginapi.Device, len(list))}
	for i, d := range list {
		p := &pluginapi.Device{ID: d.ID, Health: pluginapi.Unhealthy}
		if d.Healthy {
			p.Health = pluginapi.Healthy
		}
		if d.NUMA >= 0 {
			p.Topology = &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: int64(d.NUMA)}}}
		}
		out.Devices[i] = p
	}
	return out
}
