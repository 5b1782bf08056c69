// Package explain says why a pod waits, or where it is and what is wrong with it.
//
// Find looks up the pod, or the pods of the object that makes them; Explain judges it with what a survey
// saw; Draw lays the answer out as text.
//
// # Promise
//
// GCU verdicts are the scheduler's own code on the scheduler's own account of the same objects. A node
// is said to have room only if nothing that was evaluated stands against the pod there; what was not
// evaluated is named. What a change would do is proven before it is told (package remedy). The
// scheduler's words are always quoted, whatever this package thinks.
//
// # Refusals
//
// With rights to one namespace only, no node is judged: the answer is what the pod says of itself, the
// scheduler's words, and the names of what could not be seen. Explanation is a versioned format: within
// one APIVersion fields are added, never changed.
package explain
