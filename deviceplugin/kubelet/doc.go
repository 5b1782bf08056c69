// Package kubelet is the node agent's side of kubelet: it serves a resource to kubelet's device manager
// and tells whose container a set of device IDs belongs to.
//
// # Promise
//
// A Server keeps one resource registered for as long as it runs. It registers once for each kubelet: a
// restart of kubelet, its folder wiped or its socket made twice in a row, ends in one registration and
// one open stream. What the stream said last is what Devices held last; nothing is sent when nothing
// changed.
//
// An Identifier names the pod and the containers that hold a set of IDs, or fails. It never chooses
// between two pods.
//
// # Why each registration has a socket of its own
//
// Kubelet keys what it knows of a plugin by the socket's path. A second registration on a path that it
// still holds is refused, and the refusal makes it lose the connection it had: it then takes the path
// for connected until kubelet itself is restarted. So a path is registered once, successful or not, and
// the next attempt uses the next path.
//
// # Restart
//
// Nothing is kept between runs. A Server removes the socket files that it made itself, known by their
// inode, and no others; kubelet removes what a killed agent left when it starts.
//
// # Refusals
//
// IDs that no container holds, IDs that containers of two pods hold, and IDs that can only be looked up
// in pod-resources while more than one container of the pod could be meant.
package kubelet
