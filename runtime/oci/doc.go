// Package oci is enflame-container-runtime: it stands in front of the real OCI runtime.
//
// # Promise
//
// For create and run it reads the bundle's config.json, lets package modifier edit it, and then becomes the
// real runtime with the same arguments and environment. For every other command it becomes the real runtime
// at once. It starts no process, and nothing of a container's environment or root file system is executed
// or loaded by it.
//
// # Assumptions
//
// The command line is that of runc or crun: options, a command, its options and arguments. An option this
// release does not know is taken to have no value of its own.
//
// # Restart
//
// Nothing is kept. A spec that was edited asks for the same cards when it is read again, and they are in it
// already.
//
// # Refusals
//
// A container whose spec cannot be edited as it asks is not created. The reason goes to standard error and,
// as runc does it, to the file of --log, from which engines take what they tell their users. Settings that
// cannot be read stop all commands, because which runtime to become stands in them.
package oci
