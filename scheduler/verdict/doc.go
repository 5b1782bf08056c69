// Package verdict judges nodes for one pod: by the scheduler's own placement code for GCU, and by
// Kubernetes' helper libraries for what else can be evaluated outside a scheduler: selectors, affinity,
// taints, cordoned nodes, CPU, memory and the other resources, the number of pods.
//
// # Promise
//
// A node of which Fits is true has room for the pod by all that is evaluated here. What is not
// evaluated (pod affinity, topology spread, host ports, volumes' places, resource claims) is named by
// NotEvaluated, so that nobody takes silence for consent.
//
// The package is pure: it reads what a survey saw.
package verdict
