// Package report is what the probe in a container tells: one line of JSON that the tests on a real node read.
package report

// Report is what a container finds.
type Report struct {
	// Env are the variables that start with ENFLAME_.
	Env map[string]string `json:"env"`
	// Nodes are the device nodes in /dev whose names start with gcu, sorted.
	Nodes []Node `json:"nodes"`
	// Tried are nodes that the container made for itself.
	Tried []Node `json:"tried,omitempty"`
}

// Node is a device node.
type Node struct {
	Path  string `json:"path"`
	Major uint32 `json:"major"`
	Minor uint32 `json:"minor"`
	// Open is what opening it gives: "" for success, else the error's name. Without a driver that is ENXIO where the
	// rules allow it and EPERM where they do not.
	Open string `json:"open"`
}
