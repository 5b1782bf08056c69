// Package doctor looks at a host as an administrator would before running containers with GCU cards on it:
// cgroups and who manages them, the driver, device nodes, CDI and the files of the toolkit.
//
// # Promise
//
// Each finding says what was seen and, unless all is well, what is to be done. A part that cannot be looked
// at is a finding and does not stop the others. The host is only read.
//
// # What it cannot tell
//
// It starts no program, so it does not know versions of engines, and looks at their files and not at what a
// running one has loaded.
package doctor
