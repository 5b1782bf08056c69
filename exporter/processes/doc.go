// Package processes says what the processes of a card are called and which pods they belong to.
//
// # Promise
//
// A process belongs to the pod whose control group it is in, which the kernel keeps and a container cannot leave.
// Nothing is matched by size, age or order. What a container names its own groups does not matter: the outermost pod
// of a path counts.
//
// # Assumptions
//
// The driver tells process numbers as the host's first PID namespace has them. So the /proc that is read must be that
// namespace's. A container without hostPID sees a /proc of its own in which the same numbers are other processes, or
// none; reading it would name strangers. Which of the two it is cannot be told from /proc/1/ns/pid by a container that
// is not privileged (the kernel refuses), nor from names, which anybody can take. It is told by process 2: in the
// first namespace, and only there, it is the kernel's own thread daemon, and its kernel-thread flag cannot be set by a
// program.
//
// A container with a control group namespace of its own, the default with version 2, reads paths that are relative to
// its own group: /../../kubepods-burstable-pod….slice/…. They are understood.
//
// # Restart
//
// Nothing is kept: each look reads anew.
//
// # Refusals
//
// A number that was given to another process since the card was asked is not told as that other one. It keeps its
// memory and has no name and no pod, as has a process that is gone. Without the host's processes nothing is told.
package processes
