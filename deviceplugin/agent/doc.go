// Package agent is the node agent: it tells kubelet, the API server and people what cards the node has, how
// they are and how much of them is free, and it gives containers the cards of their pods' records. One
// process per node serves whole cards and shares, so there is one place that decides.
//
// # What it says
//
// To kubelet, per resource: healthy IDs = what is free on usable cards + what kubelet counts for the pods
// that are here. So a scheduler that knows nothing of cards computes the free amount right, and units that
// the other mode took are gone from allocatable while they are taken. Held IDs become unhealthy only when a
// fault of their card is proven; then as many spare ones are offered instead, since kubelet goes on
// counting the pod.
//
// To the API server: the card list (annotation gcu-devices), slices per card (gcu-shared-capacity), the
// conditions GCUHealthy and GCUServing, events. Each is written when it changes and not otherwise.
//
// # What it keeps
//
// The account of who holds what is the ledger that the scheduler uses, fed with this node's pods, and the
// node's book for pods that the API server has forgotten and whose processes still run. The agent never
// moves a recorded holder. It picks cards only for a pod that came without a record, from what neither book
// nor ledger counts as held.
//
// # Restart
//
// Book, health history and the units in force are on disk; the rest is read from kubelet and the API server
// before anything is registered. The files of tickets are rebuilt then. In a rolling update the old and the
// new agent serve side by side: they share the book under a lock and have sockets of their own.
//
// # Refusals
//
// Nothing is advertised for new pods while health cannot be asked, while an engine is not known to resolve
// tickets (shares only), or while a change of the memory unit waits for shares to end. What is refused at
// start is said in an event at the pod, and a pod that is refused for long is evicted if something will
// make it anew elsewhere.
package agent
