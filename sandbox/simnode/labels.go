package simnode

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/nfd/labels"
)

// hostLabels are those that kubelet, NFD's rule and an administrator give a node. Feature discovery owns none of them.
func (m Machine) hostLabels(names *contract.Names) map[string]string {
	return map[string]string{
		"kubernetes.io/hostname":                           m.Name,
		"kubernetes.io/os":                                 "linux",
		"kubernetes.io/arch":                               "amd64",
		"feature.node.kubernetes.io/pci-1e36.present":      "true",
		"feature.node.kubernetes.io/pci-1200_1e36.present": "true",
		names.PresentLabel:                                 "true",
		names.SharingLabel:                                 "true",
	}
}

// cardLabels are those that feature discovery gives the machine, made by its own function. They are for nodes that run
// no discovery.
func (m Machine) cardLabels(names *contract.Names, now time.Time) map[string]string {
	facts := labels.Facts{Driver: labels.Text{Value: m.Driver}, Machine: labels.Text{Value: m.Host}}
	for _, d := range m.Devices.Devices {
		facts.Cards = append(facts.Cards, labels.Card{Model: d.Model, Product: m.Product, Family: m.Family, MemoryMiB: d.MemoryMiB})
	}
	return labels.Of(facts, nil, now, labels.Options{Names: names}).Labels
}

// labels are those that a node is registered with.
func (n *node) labels(now time.Time) map[string]string {
	out := n.hostLabels(n.names)
	if n.manager.options.Client == nil {
		maps.Copy(out, n.cardLabels(n.names, now))
	}
	return out
}

// labelled says whether feature discovery has labelled the Node, or has left that to the administrator.
func labelled(obj *corev1.Node, names *contract.Names) bool {
	_, published := obj.Annotations[names.PublishedLabelsKey]
	return published || obj.Labels[names.DeployPrefix+contract.ComponentGFD] == "false"
}
