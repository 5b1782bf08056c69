// Package placement chooses cards. It answers, for one node as it stands and one request, whether the
// request fits, on which cards, how good that is, and if it does not fit, why.
//
// Promise: the same node and request always give the same answer, whatever order the input had; what
// Fits accepts Choose places; a choice never takes more of a card than is free and never mixes a whole
// card with anything else that runs at the same time. Fits allocates nothing, since it runs for every
// node of a cluster.
//
// The package is pure: no I/O, no clock, no logging. Who holds what is the ledger's business; it hands
// in a Node.
package placement
