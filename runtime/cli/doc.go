// Package cli is the command line of enflame-container-cli: what containers are given on this host, and how
// to give it to one that is made by hand.
//
// # Promise
//
// info and list change nothing. list and info with --json print one JSON value with a version; new fields
// may come, none goes within a version. configure edits the spec in a bundle exactly as
// enflame-container-runtime does for a container whose asking counts, by the same code: no hook, no process
// left behind, nothing mounted by itself. The exit code is 0 when all is as it should be, and 1 otherwise;
// the answer is then on standard output as far as there is one.
//
// # Assumptions
//
// Whoever runs configure makes the container and decides about its cards; the environment in the spec is
// not asked. The root file system in the bundle is not trusted.
//
// # Refusals
//
// A spec that is no regular file, has cards already, or whose root file system has links that lead out of
// it where something would be mounted. Cards that the host does not have.
package cli
