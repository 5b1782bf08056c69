// Package nodetest is a node for tests of programs that run on one: the real API server with a Node object and a
// namespace, the imitation of kubelet's device manager, and the real node agent with the rights it ships with, on a
// made-up machine.
//
// Main starts one API server for all tests of a package. Each test makes nodes of its own and leaves none behind.
package nodetest
