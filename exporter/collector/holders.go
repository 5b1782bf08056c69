package collector

import (
	"slices"
	"strconv"

	"github.com/topscloud/topscloud/eflib"
	"github.com/topscloud/topscloud/gcushare/ledger/nodebook"
)

// Which container of a pod a process runs in is not told: the book does not know the engine's containers. So what
// processes use is told of a pod, and of a container only where it is the only one of its pod that holds the card.

// podName is what a pod is called.
type podName struct{ namespace, name string }

// podHolding is what one pod has of one card.
type podHolding struct {
	uid string
	podName
	// containers has each container's holding.
	containers []nodebook.Holding
	usedBytes  int64
}

// only returns the one holding of the pod on the card, and whether there is one alone.
func (p *podHolding) only() (nodebook.Holding, bool) {
	if len(p.containers) != 1 {
		return nodebook.Holding{}, false
	}
	return p.containers[0], true
}

// exceeds says whether the pod's processes use more of the card than its containers were given. Who has the whole card
// cannot; the card's size in MiB is rounded down.
func (p *podHolding) exceeds() bool {
	var granted int64
	for _, h := range p.containers {
		if h.Kind == nodebook.Whole {
			return false
		}
		granted += h.MemoryMiB << 20
	}
	return p.usedBytes > granted
}

// attribute adds up what the pods that hold a card use of it, and what belongs to none of them.
func attribute(c *card) {
	for _, h := range c.holdings {
		i := slices.IndexFunc(c.pods, func(p podHolding) bool { return p.uid == h.PodUID })
		if i < 0 {
			i = len(c.pods)
			c.pods = append(c.pods, podHolding{uid: h.PodUID, podName: podName{h.Namespace, h.Pod}})
		}
		c.pods[i].containers = append(c.pods[i].containers, h)
	}
	for _, p := range c.Processes {
		if i := slices.IndexFunc(c.pods, func(h podHolding) bool { return h.uid == p.PodUID }); i >= 0 {
			c.pods[i].usedBytes += p.DeviceBytes
		} else {
			c.othersBytes += p.DeviceBytes
		}
	}
}

// processesKnown says whether card and host told of the card's processes.
func (c *card) processesKnown() bool {
	_, told := c.Sample.Processes.Value()
	return told && c.host.ProcessesErr == nil && c.ProcessesErr == nil
}

// holdingsKnown says whether it is known who holds the card.
func (c *card) holdingsKnown() bool {
	return c.owners != nil && c.owners.Agent == nil && c.owners.Kubelet == nil && !c.ambiguous
}

// holders are the metrics of who has and who uses a card.
func holders() []metric {
	container := []string{"pod_name", "pod_namespace", "container_name", "pod_uid", "kind", "resource"}
	pod := []string{"pod_name", "pod_namespace", "pod_uid"}
	return []metric{
		{group: Allocation, name: "enflame_gcu_allocation_bytes", help: "Memory of the card that a container was given; all of it where the card is the container's alone.", unit: "bytes",
			kind: gaugeKind, scope: cardLabels, labels: container,
			of: func(c *card, t tell) {
				for _, h := range c.holdings {
					t(float64(h.MemoryMiB)*(1<<20), h.Pod, h.Namespace, h.Container, h.PodUID, h.Kind, h.Resource)
				}
			}},
		{group: Allocation, name: "enflame_gcu_allocation_used_bytes", help: "Memory of the card that the processes of a pod use, where one container of the pod alone holds the card.", unit: "bytes",
			kind: gaugeKind, scope: cardLabels, labels: container, fields: eflib.FieldProcesses,
			of: ofPods(func(p *podHolding, t tell) {
				if h, alone := p.only(); alone {
					t(float64(p.usedBytes), p.name, p.namespace, h.Container, p.uid, h.Kind, h.Resource)
				}
			})},
		{group: Allocation, name: "enflame_gcu_pod_used_bytes", help: "Memory of the card that the processes of a pod use that holds some of it.", unit: "bytes",
			kind: gaugeKind, scope: cardLabels, labels: pod, fields: eflib.FieldProcesses,
			of: ofPods(func(p *podHolding, t tell) { t(float64(p.usedBytes), p.name, p.namespace, p.uid) })},
		{group: Allocation, name: "enflame_gcu_share_exceeded", help: "1 if the processes of a pod use more of the card than its containers were given, else 0.",
			kind: gaugeKind, scope: cardLabels, labels: pod, fields: eflib.FieldProcesses,
			of: ofPods(func(p *podHolding, t tell) { t(truth(p.exceeds()), p.name, p.namespace, p.uid) })},
		{group: Allocation, name: "enflame_gcu_unattributed_memory_bytes", help: "Memory of the card that is used by processes whose pod holds nothing of it, or that are in no pod.", unit: "bytes",
			kind: gaugeKind, scope: cardLabels, fields: eflib.FieldProcesses,
			of: func(c *card, t tell) {
				if c.processesKnown() && c.holdingsKnown() {
					t(float64(c.othersBytes))
				}
			}},
		{group: groupProcesses, name: "enflame_gcu_process_memory_bytes", help: "Memory of the card that a process holds.", unit: "bytes",
			kind: gaugeKind, scope: cardLabels, labels: []string{"pod_name", "pod_namespace", "container_name", "pod_uid", "pid", "process"}, fields: eflib.FieldProcesses,
			of: tellProcesses},
	}
}

// ofPods tells of each pod that holds the card, where the card's processes are known.
func ofPods(one func(*podHolding, tell)) func(*card, tell) {
	return func(c *card, t tell) {
		if !c.processesKnown() || !c.holdingsKnown() {
			return
		}
		for i := range c.pods {
			one(&c.pods[i], t)
		}
	}
}

func tellProcesses(c *card, t tell) {
	if !c.processesKnown() {
		return
	}
	for _, p := range c.Processes {
		uid, container := p.PodUID, ""
		if c.owners == nil { // nothing is to be said of pods
			uid = ""
		}
		pod := c.podNames[uid]
		if i := slices.IndexFunc(c.pods, func(h podHolding) bool { return h.uid == uid }); i >= 0 {
			if h, alone := c.pods[i].only(); alone {
				container = h.Container
			}
		}
		t(float64(p.DeviceBytes), pod.name, pod.namespace, container, uid, strconv.Itoa(p.PID), p.Name)
	}
}
