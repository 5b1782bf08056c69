// Package cli is the command line of gcu-sandbox: up, down, status, logs, fault, binaries and demo.
//
// up holds the sandbox until it is interrupted. With --detach it starts a supervisor, which is up
// itself in a session of its own, shows that one's progress, and returns when it is ready; the last
// line it prints is then an export of KUBECONFIG that a shell can evaluate.
package cli
