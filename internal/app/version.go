// Package app holds what every command of the project shares. It imports the standard library only.
package app

import "runtime/debug"

// version is set by the linker in releases (make build).
var version string

// Version returns the release this binary was built from; for one built by hand, what the Go command
// knows of the source.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
