// Package modifier edits the OCI spec of a container that is to have cards.
//
// # Promise
//
// All that a container is given stands in its spec: device nodes under linux.devices, allow rules for
// these nodes and no others under linux.resources.devices, tools and libraries as read-only bind mounts,
// and the folder of the libraries in LD_LIBRARY_PATH. There is no hook. What is in the spec is known to the
// engine and to systemd, so a daemon-reload, which writes the device rules anew, keeps the cards. Parts of
// the spec that are not touched are kept as they were, also those this release does not know.
//
// A container that asks for nothing, or whose asking does not count, is not changed at all.
//
// # Whose asking counts
//
// The environment of a container comes from whoever made the image, so by itself it is no permission. It
// counts where the container can open every card anyway (privileged), where its namespace is trusted, or
// where the settings say so; they do by default for engines that Kubernetes does not drive, since whoever
// may start a container there may name its devices too. A container whose cards came with a CDI device is
// the node agent's: its environment is a consequence of that and adds nothing.
//
// # Refusals
//
// A value out of the grammar, or with cards the host does not have, where the asking counts. A path that
// leads out of the root file system, or into a volume of the container: a mount point made there would be
// a file in somebody else's folder. A root file system outside of the bundle that is named by a relative
// path. Two different values of ENFLAME_VISIBLE_DEVICES.
package modifier
