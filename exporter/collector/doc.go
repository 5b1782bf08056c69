// Package collector turns what was sampled of cards, and whose they are, into metrics.
//
// # Promise
//
// Collecting reads memory only: no card, agent or kubelet is asked. Metrics of earlier releases of the vendor's
// exporter keep their names, labels and units (docs/contract.md); those of our own stand beside them. Every series
// is of one card, and cards are told apart by their minor and bus id, so no two series are the same.
//
// What a card does not tell has no series: never -1, never 4294967295. Percentages are in 0 to 100 and used memory
// is at most the total, since eflib tells no reading that cannot be true; such readings are counted.
//
// A Collector is a prometheus.Collector, and a Gatherer as well, which gives the same without a registry: what a
// registry finds out for each series in each scrape (no two are the same, labels are sorted) holds here by how they are
// made, and tests hold both to be equal.
//
// Series of a card carry pod_name, pod_namespace and container_name only where exactly one container holds the
// card; they are empty otherwise, which to Prometheus is as if they were not there. A shared card's holders are in
// enflame_gcu_allocation_bytes, one series each.
//
// # Refusals
//
// A card that does not answer has health 0, enflame_gcu_up 0, and what is known without asking it: its place, its
// names and its holders.
package collector
