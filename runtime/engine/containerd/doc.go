// Package containerd configures containerd.
//
// # Where
//
// containerd 2 (configuration of version 3 and later) merges the files of "imports" into its sections: where
// it imports a folder, the runtime goes into a file of its own there, and /etc/containerd/config.toml is not
// touched. containerd 1 lets a section of an imported file replace the whole section of the same plugin, so
// there a file of our own would throw out all else that is set: the runtime goes to the end of the file that
// decides about the CRI plugin, between two marks, and lines that have to be others carry the old one in a
// comment.
//
// # What
//
// The runtime inherits what the host's default runtime has, options included, with another binary. CDI is
// switched on where the engine has a switch and it is off.
package containerd
