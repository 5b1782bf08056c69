package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/topscloud/topscloud/gcushare/share"
	"github.com/topscloud/topscloud/internal/contract"
	"github.com/topscloud/topscloud/scheduler/survey"
)

// mistakes are what is wrong with a pod as it is written, nodes left out.
func mistakes(names *contract.Names, pod *v1.Pod) []Finding {
	var out []Finding
	out = append(out, unknownResources(names, pod)...)
	out = append(out, annotationMistakes(names, pod)...)
	if pod.Spec.NodeName == "" {
		out = append(out, schedulerMistakes(names, pod)...)
	}
	for _, gate := range pod.Spec.SchedulingGates {
		out = append(out, Finding{"Gated", fmt.Sprintf("Scheduling gate %s is closed: no scheduler looks at the pod before whoever set the gate opens it.", gate.Name), ""})
	}
	return out
}

// unknownResources finds limits in our domain that mean nothing.
func unknownResources(names *contract.Names, pod *v1.Pod) []Finding {
	known := []string{names.ResourceWhole, names.ResourceMemory, names.ResourceSlice}
	if names.ResourceAlias != "" {
		known = append(known, names.ResourceAlias)
	}
	var out []Finding
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, name := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
			key := string(name)
			if slices.Contains(known, key) || !strings.Contains(key, "/") {
				continue
			}
			guess := nearest(key, known)
			if !strings.HasPrefix(key, names.Domain+"/") && guess == "" {
				continue
			}
			f := Finding{Reason: "UnknownResource", Text: fmt.Sprintf("Container %s has limit %s, which this stack does not know.", c.Name, key)}
			if guess != "" {
				f.Do = fmt.Sprintf("did you mean %s? There are %s", guess, strings.Join(known, ", "))
			} else {
				f.Do = "there are " + strings.Join(known, ", ")
			}
			out = append(out, f)
		}
	}
	return out
}

func annotationMistakes(names *contract.Names, pod *v1.Pod) []Finding {
	wishes := []string{names.PolicyKey, names.TopologyKey, names.CardsKey, names.UseUUIDKey, names.NoUseUUIDKey, names.EvictAfterKey}
	records := names.RecordKeys()
	var out []Finding
	var refining []string
	for _, key := range slices.Sorted(maps.Keys(pod.Annotations)) {
		switch {
		case slices.Contains(wishes, key):
			refining = append(refining, key)
		case !strings.HasPrefix(key, names.Domain+"/") || slices.Contains(records, key):
		default:
			f := Finding{Reason: "UnknownAnnotation", Text: fmt.Sprintf("Annotation %s means nothing to this stack; it has no effect.", key)}
			if guess := nearest(key, wishes); guess != "" {
				f.Do = fmt.Sprintf("did you mean %s?", guess)
			}
			out = append(out, f)
		}
	}
	if len(refining) > 0 && !share.Asks(names, pod) {
		out = append(out, Finding{"NoLimit",
			fmt.Sprintf("The pod asks for GCU by annotation only (%s). Annotations refine a request and never make one: as written it gets no card.", strings.Join(refining, ", ")),
			fmt.Sprintf("give a container a limit, for example %s: 8", names.ResourceMemory)})
	}
	return out
}

// schedulerMistakes looks at who is to place a pod that asks for GCU.
func schedulerMistakes(names *contract.Names, pod *v1.Pod) []Finding {
	if !share.Asks(names, pod) {
		return nil
	}
	fix := "schedulerName cannot be changed on a pod that exists: make it anew with schedulerName: " + contract.SchedulerName
	switch name := pod.Spec.SchedulerName; name {
	case contract.SchedulerName, contract.GCUShareSchedulerName:
		return nil
	case "", v1.DefaultSchedulerName:
		return []Finding{{"DefaultScheduler",
			"The pod names no scheduler, so default-scheduler places it, which knows numbers of GCU units and no cards: the pod would be unrecorded, with room for it set aside by guess.",
			fix}}
	default:
		f := Finding{"UnknownScheduler", fmt.Sprintf("The pod names scheduler %s.", name), fix}
		if _, said := saidOf(pod); !said {
			f.Text = fmt.Sprintf("The pod names scheduler %s, and no scheduler of that name has looked at it: nobody places it.", name)
		}
		if guess := nearest(name, []string{contract.SchedulerName, contract.GCUShareSchedulerName, v1.DefaultSchedulerName}); guess != "" {
			f.Do = fmt.Sprintf("did you mean %s? %s", guess, strings.Replace(fix, contract.SchedulerName, guess, 1))
		}
		return []Finding{f}
	}
}

// saidOf returns a scheduler's last diagnosis of a pod.
func saidOf(pod *v1.Pod) (*Said, bool) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse {
			return &Said{Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time}, c.Reason != v1.PodReasonSchedulingGated
		}
	}
	return nil, false
}

// want is one label that a pod insists on.
type want struct {
	key    string
	values []string // empty: any
	where  string
}

func wants(pod *v1.Pod) []want {
	var out []want
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		out = append(out, want{key, []string{pod.Spec.NodeSelector[key]}, "nodeSelector"})
	}
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				switch e.Operator {
				case v1.NodeSelectorOpIn:
					out = append(out, want{e.Key, e.Values, "node affinity"})
				case v1.NodeSelectorOpExists, v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
					out = append(out, want{e.Key, nil, "node affinity"})
				}
			}
		}
	}
	return out
}

// LabelMistakes finds labels that a pod insists on and no node has: did you mean.
func LabelMistakes(s *survey.Survey, pod *v1.Pod) []Finding {
	if !s.NodesSeen || len(s.Nodes) == 0 {
		return nil
	}
	present := map[string]map[string]int{}
	for _, n := range s.Nodes {
		for k, v := range n.Labels {
			if present[k] == nil {
				present[k] = map[string]int{}
			}
			present[k][v]++
		}
	}
	var out []Finding
	for _, w := range wants(pod) {
		values, known := present[w.key]
		switch {
		case !known:
			f := Finding{Reason: "UnknownLabel", Text: fmt.Sprintf("No node has label %s, which the %s asks for.", w.key, w.where)}
			if guess := nearest(w.key, slices.Collect(maps.Keys(present))); guess != "" {
				f.Do = fmt.Sprintf("did you mean %s? Values present: %s", guess, counted(present[guess]))
			}
			out = append(out, f)
		case len(w.values) > 0 && !slices.ContainsFunc(w.values, func(v string) bool { return values[v] > 0 }):
			f := Finding{Reason: "UnknownLabelValue", Text: fmt.Sprintf("No node has label %s=%s, which the %s asks for.", w.key, strings.Join(w.values, "|"), w.where)}
			f.Do = "values present: " + counted(values)
			if guess := nearest(w.values[0], slices.Collect(maps.Keys(values))); guess != "" {
				f.Do = fmt.Sprintf("did you mean %s? Values present: %s", guess, counted(values))
			}
			out = append(out, f)
		}
	}
	return out
}

// counted lists values with the number of nodes, the most frequent first.
func counted(values map[string]int) string {
	keys := slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(a, b))
	})
	var parts []string
	for i, v := range keys {
		if i == 5 {
			parts = append(parts, fmt.Sprintf("and %d more", len(keys)-i))
			break
		}
		word := "nodes"
		if values[v] == 1 {
			word = "node"
		}
		parts = append(parts, fmt.Sprintf("%s (%d %s)", v, values[v], word))
	}
	return strings.Join(parts, ", ")
}
