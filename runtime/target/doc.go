// Package target is the flags by which the programs of this room are told which host they are about: the
// one they run on, one that is mounted somewhere, or a made-up one.
//
// Cards come from what the kernel tells, or from a made-up machine. Identities that only the vendor's library
// knows are not to be had here, since these programs are static.
package target
