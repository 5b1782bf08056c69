// Package survey reads a cluster once, with the rights of whoever asks, and gives what it saw to a
// ledger.
//
// # Promise
//
// What could not be seen is named in Unseen, and Complete is false then: figures are lower bounds, and
// nothing may be proven from them. The ledger is the scheduler's own, fed with the same objects.
//
// # Assumptions
//
// The survey is one moment of two lists, pods before nodes: a pod that ended in between is still there,
// which errs on the side of cards being held. What is in flight inside a scheduler is not to be seen
// from outside it.
//
// # Refusals
//
// Read fails when the API does not answer and when a node asked for by name does not exist. Missing
// rights are no failure here; whoever cannot work without says so.
package survey
