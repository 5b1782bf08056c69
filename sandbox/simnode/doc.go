// Package simnode imitates GCU nodes towards an API server: the Node object, its lease, and a small kubelet.
//
// What runs on a GCU node is real where Options.Client is set: each node has the node agent, feature discovery and,
// with Options.Exporter, the exporter, in this process, with folders, sockets, tokens and a port of its own. They see
// one made-up machine, whose faults are the node's. A node offers nothing before feature discovery has labelled it.
// Elsewhere the node itself writes what agent and discovery would.
//
// The kubelet runs bound pods to Running (init containers in order, sidecars beside them), honours
// deletion and admits like the real one: what does not fit the node's free units becomes Failed with
// OutOf<resource>. It keeps nothing but what the API server holds, so it can be stopped at any step and
// goes on where it was. It starts no processes; its pods have no network.
//
// A pod steers it by annotations: gcu.sandbox/run-for (duration after which the pod succeeds),
// gcu.sandbox/exit-code (other than 0: the pod fails then), gcu.sandbox/init-for (duration of each init
// container), gcu.sandbox/stop-for (time the containers take to end, at most the grace period).
//
// A node steers it by the annotation gcu.sandbox/fault, a comma list:
//
//	stop           the kubelet and its heartbeat stop until the word is taken away
//	restart        the kubelet starts anew and admits its pods again; the word is removed when done
//	reboot         as restart, and GCU pods fail as after a real reboot, where kubelet admits before
//	               the device plugin has registered
//	card-fail=N    card N reports a health cause
//	card-gone=N    card N is missing
//	card-hang=N    card N does not answer, which only nodes that run an agent notice
//
// Allocatable of a GCU resource is what is free now on usable cards plus what the node's pods hold.
// Cards' free memory comes from the pods' records; a pod without a record is charged to the cards with
// the most room until it has one.
package simnode
