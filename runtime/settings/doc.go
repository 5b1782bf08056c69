// Package settings reads /etc/enflame-container-runtime/config.toml, the configuration of
// enflame-container-runtime.
//
// # Promise
//
// A host without the file has the defaults. A file that has a key or a value this release does not know is
// refused as a whole: a mistyped key that is passed over would silently be the default, and the keys here
// decide who gets cards.
//
// # Keys of older files
//
// Files of older toolkits are read. Their keys environment and ldconfig of section enflame-container-cli
// are accepted and have no effect: no program runs on the host on behalf of a container, so there is none
// to be given an environment or to run ldconfig.
package settings
