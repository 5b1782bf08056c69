package main

import "github.com/grafana/grafana-foundation-sdk/go/cog"

var (
	zero    = cog.ToPtr(0.0)
	one     = cog.ToPtr(1.0)
	hundred = cog.ToPtr(100.0)
)

// cluster is for those who run the cluster: how many cards there are, how they are, how full, and what waits.
var cluster = board{
	uid: "gcu-cluster", title: "GCU / Cluster",
	about: "Cards of the whole cluster: how many, how they are, how full, and what waits for them.",
	variables: []variable{
		{name: "host", title: words{"Node", "节点"}, query: "label_values(enflame_gcu_exporter_up, host)", all: true},
	},
	panels: []panel{
		{kind: value, title: words{"Cards", "卡总数"}, unit: "none", width: 4, height: 4,
			queries: []query{{`sum(enflame_gcu_count{host=~"$host"})`, ""}}},
		{kind: value, title: words{"Cards that are not healthy", "不健康的卡"}, unit: "none", width: 4, height: 4,
			queries: []query{{`count(enflame_gcu_health{host=~"$host"} != 2) or vector(0)`, ""}}},
		{kind: value, title: words{"Memory promised to pods", "已分配显存"}, unit: "percentunit", width: 4, height: 4, min: zero, max: one,
			queries: []query{{`(sum(enflame_gcu_allocation_bytes{host=~"$host"}) or vector(0)) / sum(enflame_gcu_memory_total_bytes{host=~"$host"})`, ""}}},
		{kind: value, title: words{"How busy the cards are", "平均利用率"}, unit: "percent", width: 4, height: 4, min: zero, max: hundred,
			queries: []query{{`avg(enflame_gcu_usage{host=~"$host"})`, ""}}},
		{kind: value, title: words{"Power", "功率"}, unit: "watt", width: 4, height: 4, min: zero,
			queries: []query{{`sum(enflame_gcu_power_consumption{host=~"$host"})`, ""}}},
		{kind: value, title: words{"Requests that wait for cards", "等待中的申请"}, unit: "none", width: 4, height: 4, min: zero,
			about:   "Pods that ask for cards and have no node, as the scheduler counts them.",
			queries: []query{{`count(count by (namespace, pod) (kube_pod_resource_request{node="", resource=~".*/(gcu|gcu-memory|shared-gcu)"})) or vector(0)`, ""}}},
		{kind: line, title: words{"How busy the cards of each node are", "各节点平均利用率"}, unit: "percent", width: 12, height: 8, min: zero, max: hundred,
			queries: []query{{`avg by (host) (enflame_gcu_usage{host=~"$host"})`, "{{host}}"}}},
		{kind: line, title: words{"Memory of each node: promised and used", "各节点显存：已分配与已使用"}, unit: "bytes", width: 12, height: 8, min: zero,
			queries: []query{
				{`sum by (host) (enflame_gcu_allocation_bytes{host=~"$host"})`, "{{host}} promised"},
				{`sum by (host) (enflame_gcu_memory_used_bytes{host=~"$host"})`, "{{host}} used"},
			}},
		{kind: line, title: words{"Cards by what they are", "按状态统计的卡数"}, unit: "none", width: 12, height: 8, min: zero,
			about:   "As the scheduler sees them: free, shared, whole (one pod has all of it), unusable.",
			queries: []query{{`sum by (state) (gcu_scheduler_cards{node=~"$host"})`, "{{state}}"}}},
		{kind: line, title: words{"Power of each node", "各节点功率"}, unit: "watt", width: 12, height: 8, min: zero,
			queries: []query{{`sum by (host) (enflame_gcu_power_consumption{host=~"$host"})`, "{{host}}"}}},
		{kind: line, title: words{"How long pods take to be placed", "调度耗时"}, unit: "s", width: 12, height: 8, min: zero,
			queries: []query{
				{`histogram_quantile(0.5, sum by (le) (rate(scheduler_scheduling_attempt_duration_seconds_bucket{result="scheduled"}[$__rate_interval])))`, "p50"},
				{`histogram_quantile(0.99, sum by (le) (rate(scheduler_scheduling_attempt_duration_seconds_bucket{result="scheduled"}[$__rate_interval])))`, "p99"},
			}},
		{kind: line, title: words{"Memory of each model", "按型号统计的显存"}, unit: "bytes", width: 12, height: 8, min: zero,
			queries: []query{{`sum by (name) (enflame_gcu_memory_total_bytes{host=~"$host"})`, "{{name}}"}}},
		{kind: list, title: words{"Cards that somebody should look at", "需要关注的卡"}, unit: "none", width: 12, height: 8,
			hidden:  []string{"__name__", "instance", "job", "metrics", "busid", "slot", "container_name", "pod_name", "pod_namespace"},
			about:   "Health: 1 unhealthy, 0 not known.",
			queries: []query{{`enflame_gcu_health{host=~"$host"} != 2`, ""}}},
		{kind: list, title: words{"Nodes that take no new pods", "已关闭调度的节点"}, unit: "none", width: 12, height: 8,
			hidden:  []string{"__name__", "instance", "job"},
			queries: []query{{`gcu_scheduler_node_closed{node=~"$host"}`, ""}}},
	},
}
