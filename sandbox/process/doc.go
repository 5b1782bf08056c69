// Package process runs the sandbox's components as child processes that do not outlive it.
//
// Each child leads its own process group, logs to a file, and has a pid file. A child gets SIGKILL
// from the kernel when the process that started it dies, whatever the reason. The pid file also holds
// the process's start time and the boot it belongs to, so a stale file never names a stranger: Reap
// and Record.Alive compare all three before anything is signalled.
//
// Linux only.
package process
