package agent

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/internal/contract"
)

// made is a container as its engine is about to make it, after everything was injected.
type made struct {
	pod         types.UID
	annotations map[string]string // the pod's, as kubelet had them when it made the sandbox
	container   string
	env         []string
	devices     []node
}

// node is a device node in a container.
type node struct {
	path         string
	major, minor int64
}

// verify compares a container that is about to be made with its pod's record: the cards by their numbers, and
// the environment. A container that the record does not name is none of its business: those that have all of the
// host's devices, like a driver's or an exporter's, are let in by others.
//
// The record of the API's pod counts; the sandbox's annotations do where the watch has not brought the pod yet.
// A pod that got its record after its sandbox was made has none in the latter.
func (a *Agent) verify(c made) error {
	text := c.annotations[a.o.Names.AllocationKey]
	if pod := a.pods.Cached(c.pod); pod != nil {
		text = pod.Annotations[a.o.Names.AllocationKey]
	}
	if text == "" {
		return nil
	}
	record, err := contract.DecodeAllocation(text)
	if err != nil {
		return fmt.Errorf("annotation %s: %w", a.o.Names.AllocationKey, err)
	}
	for _, entry := range record.Containers {
		if entry.Name == c.container {
			return a.compare(entry.Cards, c)
		}
	}
	return nil
}

func (a *Agent) compare(cards []contract.CardAllocation, c made) error {
	m := a.machine()
	var want, got []string
	for _, card := range cards {
		want = append(want, fmt.Sprint(card.Minor))
	}
	for _, d := range m.Devices {
		if slices.ContainsFunc(c.devices, func(n node) bool { return isCard(n, d) }) {
			got = append(got, fmt.Sprint(d.Minor))
		}
	}
	slices.Sort(got)
	sorted := slices.Sorted(slices.Values(want))
	if !slices.Equal(got, sorted) {
		return fmt.Errorf("it would have the devices of cards [%s], its record names [%s]", strings.Join(got, ","), strings.Join(sorted, ","))
	}
	visible := ""
	for _, e := range c.env {
		if v, ok := strings.CutPrefix(e, contract.EnvVisibleDevices+"="); ok {
			visible = v // the last one counts
		}
	}
	if visible != strings.Join(want, ",") {
		return fmt.Errorf("%s would be %q, its record says %q", contract.EnvVisibleDevices, visible, strings.Join(want, ","))
	}
	return nil
}

// isCard goes by the numbers where they are known, since a path in a container can be any device.
func isCard(n node, d eflib.Device) bool {
	if d.Major != 0 {
		return n.major == int64(d.Major) && n.minor == int64(d.DevMinor)
	}
	return n.path == eflib.NodePath(d.Minor)
}

// verifyNamed is verify with what is to be told when it fails.
func (a *Agent) verifyNamed(c made, namespace, name string) error {
	err := a.verify(c)
	if err == nil {
		return nil
	}
	a.o.Metrics.refusals.WithLabelValues("verification").Inc()
	a.logger.Error(err, "A container would have got other cards than its record's", "pod", namespace+"/"+name, "container", c.container)
	pod := a.pods.Cached(c.pod)
	if pod == nil {
		pod = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: c.pod}}
	}
	a.podEvent(pod, v1.EventTypeWarning, "GCUWrongCards", "container "+c.container+": "+err.Error())
	return fmt.Errorf("gcu-device-plugin: container %s: %w", c.container, err)
}
