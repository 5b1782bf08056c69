package plugin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
)

// direct says whether kubelet itself passes this resource's cards to containers. Units and slices stand for
// no card in particular, so there is nothing that it could pass.
func (p *Plugin) direct() bool {
	return !p.kind.Fractional() && (p.arbiter.o.Direct || p.arbiter.noCDI())
}

// addDirect adds to an answer the cards whose minors are the IDs. An ID that is no card adds nothing: the
// container is refused when it starts.
func (p *Plugin) addDirect(out *pluginapi.ContainerAllocateResponse, ids []string) {
	if !p.direct() {
		return
	}
	m := p.arbiter.o.Machine()
	devices := m.devicesByMinor()
	minors, ok := minorsOf(ids)
	for _, minor := range minors {
		_, here := devices[minor]
		ok = ok && here
	}
	if !ok {
		return
	}
	if p.arbiter.noCDI() {
		// An engine without CDI could not resolve the ticket either.
		out.CdiDevices = nil
		var texts []string
		for _, minor := range minors {
			texts = append(texts, strconv.Itoa(minor))
		}
		out.Envs = map[string]string{contract.EnvVisibleDevices: strings.Join(texts, ",")}
	}
	for _, minor := range minors {
		host := devices[minor].Node
		if host == "" {
			host = eflib.NodePath(minor)
		}
		out.Devices = append(out.Devices, &pluginapi.DeviceSpec{ContainerPath: eflib.NodePath(minor), HostPath: host, Permissions: "rw"})
	}
	out.Devices = append(out.Devices, &pluginapi.DeviceSpec{
		ContainerPath: contract.ControlDevice, HostPath: contract.ControlDevice, Permissions: "rw",
	})
}

// sameAsIDs compares a container's cards with kubelet's IDs.
func sameAsIDs(cards []contract.CardAllocation, ids []string) error {
	minors, ok := minorsOf(ids)
	var want []int
	for _, c := range cards {
		want = append(want, c.Minor)
	}
	slices.Sort(want)
	if !ok || !slices.Equal(minors, want) {
		return fmt.Errorf("kubelet passes it the cards %s, its record names %v; without device specs the record's would be passed",
			strings.Join(ids, ", "), want)
	}
	return nil
}

// minorsOf returns the cards that IDs of whole cards name, sorted; false if one names none.
func minorsOf(ids []string) ([]int, bool) {
	out := make([]int, 0, len(ids))
	for _, id := range ids {
		minor, err := strconv.Atoi(id)
		if err != nil || minor < 0 || minor >= contract.MaxCards {
			return nil, false
		}
		out = append(out, minor)
	}
	slices.Sort(out)
	return out, true
}
