package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/internal/contract"
)

// discovery is the name under which feature discovery writes.
const discovery = "gcu-feature-discovery"

// selected returns the labels of our domain that pods choose nodes by, sorted.
func selected(pods []result, names *contract.Names) []string {
	var out []string
	add := func(key string) {
		if strings.HasPrefix(key, names.Domain+"/") {
			out = append(out, key)
		}
	}
	terms := func(list ...corev1.NodeSelectorTerm) {
		for _, term := range list {
			for _, e := range term.MatchExpressions {
				add(e.Key)
			}
		}
	}
	for _, r := range pods {
		for key := range r.pod.Spec.NodeSelector {
			add(key)
		}
		if r.pod.Spec.Affinity == nil || r.pod.Spec.Affinity.NodeAffinity == nil {
			continue
		}
		affinity := r.pod.Spec.Affinity.NodeAffinity
		if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
			terms(required.NodeSelectorTerms...)
		}
		for _, p := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
			terms(p.Preference)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// writer returns who wrote a label of a node, as the API server has noted it; empty where nobody has.
func writer(n *corev1.Node, key string) string {
	for _, entry := range n.ManagedFields {
		if entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Labels map[string]json.RawMessage `json:"f:labels"`
			} `json:"f:metadata"`
		}
		if err := json.Unmarshal(entry.FieldsV1.Raw, &fields); err != nil {
			continue
		}
		if _, ok := fields.Metadata.Labels["f:"+key]; ok {
			return entry.Manager
		}
	}
	return ""
}

// label is one label of a node and who wrote it.
type label struct{ node, key, value, by string }

// labelsOf returns those of the keys that nodes have, by node and key.
func labelsOf(nodes []corev1.Node, keys []string) []label {
	var out []label
	for i := range nodes {
		for _, key := range keys {
			if value, ok := nodes[i].Labels[key]; ok {
				out = append(out, label{nodes[i].Name, key, value, writer(&nodes[i], key)})
			}
		}
	}
	return out
}

// judgeLabels returns which of them feature discovery did not write.
func judgeLabels(labels []label) []error {
	var errs []error
	for _, l := range labels {
		if l.by != discovery {
			errs = append(errs, fmt.Errorf("node %s: label %s was written by %q: want %s", l.node, l.key, l.by, discovery))
		}
	}
	return errs
}
