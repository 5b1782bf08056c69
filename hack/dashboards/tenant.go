package main

// tenant is for those who run jobs: what their pods were given and what they make of it.
var tenant = board{
	uid: "gcu-tenant", title: "GCU / Tenant",
	about: "What the pods of a namespace were given, and what they make of it.",
	variables: []variable{
		{name: "namespace", title: words{"Namespace", "命名空间"}, query: "label_values(enflame_gcu_allocation_bytes, pod_namespace)"},
		{name: "pod", title: words{"Pod", "Pod"}, query: `label_values(enflame_gcu_allocation_bytes{pod_namespace="$namespace"}, pod_name)`, all: true},
	},
	panels: []panel{
		{kind: value, title: words{"Memory given", "已分配显存"}, unit: "bytes", width: 6, height: 4, min: zero,
			queries: []query{{`sum(` + held("enflame_gcu_allocation_bytes") + `)`, ""}}},
		{kind: value, title: words{"Memory used", "已使用显存"}, unit: "bytes", width: 6, height: 4, min: zero,
			about:   "Of the pods' processes, told where the exporter sees them.",
			queries: []query{{`sum(` + held("enflame_gcu_pod_used_bytes") + `)`, ""}}},
		{kind: value, title: words{"Cards they are on", "使用的卡数"}, unit: "none", width: 6, height: 4, min: zero,
			queries: []query{{`count(count by (uuid) (` + held("enflame_gcu_allocation_bytes") + `))`, ""}}},
		{kind: value, title: words{"Pods that use more than they were given", "超额使用的 Pod"}, unit: "none", width: 6, height: 4, min: zero,
			queries: []query{{`sum(max by (pod_name) (` + held("enflame_gcu_share_exceeded") + `))`, ""}}},
		{kind: line, title: words{"Memory used by each pod", "各 Pod 已用显存"}, unit: "bytes", width: 12, height: 8, min: zero,
			queries: []query{{`sum by (pod_name) (` + held("enflame_gcu_pod_used_bytes") + `)`, "{{pod_name}}"}}},
		{kind: line, title: words{"Used of what was given", "已用占已分配的比例"}, unit: "percentunit", width: 12, height: 8, min: zero,
			queries: []query{{`sum by (pod_name) (` + held("enflame_gcu_pod_used_bytes") + `) / sum by (pod_name) (` + held("enflame_gcu_allocation_bytes") + `)`, "{{pod_name}}"}}},
		{kind: line, title: words{"How busy the pods' own cards are", "独占卡利用率"}, unit: "percent", width: 12, height: 8, min: zero, max: hundred,
			about:   "Cards that one container has alone: only there is what the card does what the pod does.",
			queries: []query{{`avg by (pod_name) (` + held("enflame_gcu_usage") + `)`, "{{pod_name}}"}}},
		{kind: line, title: words{"Power of the pods' own cards", "独占卡功率"}, unit: "watt", width: 12, height: 8, min: zero,
			queries: []query{{`sum by (pod_name) (` + held("enflame_gcu_power_consumption") + `)`, "{{pod_name}}"}}},
		{kind: list, title: words{"What each container was given", "各容器的分配"}, unit: "bytes", width: 24, height: 9,
			hidden:  []string{"__name__", "instance", "job", "busid", "slot", "pod_uid"},
			queries: []query{{held("enflame_gcu_allocation_bytes"), ""}}},
	},
}

func held(metric string) string {
	return metric + `{pod_namespace="$namespace", pod_name=~"$pod"}`
}
