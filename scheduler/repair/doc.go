// Package repair corrects the record of a pod: which cards it holds.
//
// Sources say what they know of that: the administrator, the record itself where parts of it can be
// read, the room that the other holders leave. Plan puts together, container by container, what the
// first source in order knows, and tries the result on a copy of the account. Write stores it.
//
// # Promise
//
// A record that Plan proposes names every container that asks for GCU, only cards that the node has, and
// as much of each as the container's limits say; with it no card passes its memory. Write names the pod's
// UID and resourceVersion as preconditions, so that what was shown is what is changed, and writes with the
// caller's own identity: the admission policy decides who may.
//
// # Refusals
//
// Nothing is guessed. Older annotations are told as a hint and never used, since tools of other makers
// write them. When a container's cards are not known, Plan says which cards it could be on, and asks.
package repair
