// Package host finds on a host what a container with cards is given: device nodes, the tools and libraries
// of the vendor, and the links in /dev/char.
//
// # Promise
//
// A Node has the numbers that the kernel's files in /sys and the node in /dev agree on, so that a rule made
// from it opens this card and no other. Where the two differ there is no Node but an error: a stale node in
// /dev could be another driver's device by now.
//
// Paths are resolved below a root by Resolve, which neither follows a link out of the root nor climbs
// above it.
//
// # Assumptions
//
// The host is trusted, a root file system of a container is not. Nobody else changes a root file system
// while a container is being made from it.
//
// # Refusals
//
// A node in /dev that is missing, is no character device, or has other numbers than /sys says. A path in
// a root file system that leads out of it: ErrEscape.
package host
