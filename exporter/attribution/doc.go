// Package attribution says whose a card is: which containers hold it, for the labels of metrics.
//
// # Promise
//
// What a container holds comes from the node agent's book, which knows pods by UID. Kubelet's device IDs are
// never taken for cards: they are anonymous, or permuted. A holding is told only while kubelet's pod-resources
// service lists that container with that resource too, so what is told is true of this moment on both sides.
// Resources of our domain that the book does not know, such as those of another device plugin, are told by name
// and number, without cards. A holding's own resource may be of another domain.
//
// A holding is of a card by nodebook's Holding.On: minor, uuid and PCI address.
//
// Reading a snapshot never waits and never asks anybody.
//
// # Assumptions
//
// Kubelet lists a container's devices from the pod's admission on, which is before the agent gives it cards. So a
// book is compared with a list that was asked for after it.
//
// # Restart
//
// Nothing is kept. The first snapshot comes once book and kubelet have answered.
//
// # Refusals
//
// While the agent or kubelet is away for longer than MaxAge, nothing is attributed rather than something that was
// true once; the snapshot says which of them it is, and failures are counted.
package attribution
