// Package realnode joins one real node to a sandbox: containerd and kubelet as child processes, runc from the
// machine, an image of our own, and device nodes of a made-up machine.
//
// # Promise
//
// Start returns when the node is Ready. Everything is below one folder, with a cgroup, a bridge and sockets of its own,
// except for what kubelet, containerd and CNI insist on: /var/lib/kubelet/device-plugins, /var/log/containers,
// the shims' sockets in /run/containerd/s, the results in /var/lib/cni and a handful of sysctls. What was there before is
// there afterwards; what was not is gone. Nothing can be reached from beyond the machine, and no firewall rule is made.
//
// # One at a time
//
// Kubelet's device-plugins folder cannot be moved. So one node runs on a machine at a time: Start waits for the one of
// another process of ours, and refuses when it finds a kubelet that is not ours.
//
// # Restart
//
// A file on the machine says what a node has made outside its folder. When the process is killed, the kernel ends kubelet
// and containerd; shims, containers, mounts and the rest stay. The next Start, or Clean, takes them away by that
// file: processes by the cgroup and by the socket they were started for, mounts by the folder. It never goes by a
// program's name alone.
package realnode
