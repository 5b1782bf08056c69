// Package remedy finds the smallest changes with which a request that fits no node would fit one: less
// memory, fewer cards, a weaker topology, cards uncordoned, pods finishing.
//
// # Promise
//
// Each change is proven on a copy of the nodes before it is told: with it, and nothing else, the request
// fits a node. Of its kind nothing smaller does: no smaller cut, no smaller number of cards to uncordon
// or of pods to finish, unless Smallest is false because there were too many combinations to try; then
// still none of the named cards or pods can be left out. Equal input gives equal output.
//
// # Refusals
//
// Nothing is proposed for a node whose agent is not registered, which is closed for its device list or
// whose labels and taints forbid the pod: nothing of the above helps there. The package is pure.
package remedy
